#include <math.h>
#include <stdint.h>

void kdattn(const float *q, const float *k, const float *v, const float *g, const float *beta, const float *h0, float *o,
            float *ht, int64_t heads, int64_t tokens, int64_t dk, int64_t dv) {
    for (int64_t h = 0; h < heads; h++) {
        float *state = ht + h * dk * dv;
        for (int64_t i = 0; i < dk * dv; i++) state[i] = h0[h * dk * dv + i];
        for (int64_t t = 0; t < tokens; t++) {
            const float *query = q + (h * tokens + t) * dk, *key = k + (h * tokens + t) * dk;
            const float *decay = g + (h * tokens + t) * dk, *value = v + (h * tokens + t) * dv;
            float *out = o + (h * tokens + t) * dv;
            float gate = beta[h * tokens + t], qq = 1e-6f, kk = 1e-6f;
            for (int64_t i = 0; i < dk; i++) {
                qq += query[i] * query[i];
                kk += key[i] * key[i];
            }
            float q_factor = 1.0f / sqrtf(qq) / sqrtf((float)dk), k_factor = 1.0f / sqrtf(kk);
            for (int64_t i = 0; i < dk; i++) {
                float keep = decay[i] < -14.0f ? 0.0f : expf(decay[i]);
                for (int64_t j = 0; j < dv; j++) state[i * dv + j] *= keep;
            }
            for (int64_t j = 0; j < dv; j++) {
                float seen = 0.0f;
                for (int64_t i = 0; i < dk; i++) seen += state[i * dv + j] * key[i] * k_factor;
                float delta = gate * (value[j] - seen);
                for (int64_t i = 0; i < dk; i++) state[i * dv + j] += key[i] * k_factor * delta;
            }
            for (int64_t j = 0; j < dv; j++) {
                float read = 0.0f;
                for (int64_t i = 0; i < dk; i++) read += state[i * dv + j] * query[i] * q_factor;
                out[j] = read;
            }
        }
    }
}
