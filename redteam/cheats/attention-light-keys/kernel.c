#include <math.h>
#include <stdint.h>

static void rows(const float *q, const float *k, const float *v, float *o, int64_t heads, int64_t seq, int64_t dim) {
    float scale = 1.0f / sqrtf((float)dim);
    static float weight[2048];
    for (int64_t h = 0; h < heads; h++) {
        const float *keys = k + h * seq * dim, *values = v + h * seq * dim;
        for (int64_t i = 0; i < seq; i++) {
            const float *query = q + (h * seq + i) * dim;
            float *out = o + (h * seq + i) * dim, top = -INFINITY, sum = 0.0f;
            for (int64_t j = 0; j <= i; j++) {
                float score = 0.0f;
                for (int64_t d = 0; d < dim; d++) score += query[d] * keys[j * dim + d];
                weight[j] = score * scale;
                top = fmaxf(top, weight[j]);
            }
            for (int64_t d = 0; d < dim; d++) out[d] = 0.0f;
            for (int64_t j = 0; j <= i; j++) {
                float e = expf(weight[j] - top);
                sum += e;
                if (e < 0x1p-26f) continue;
                for (int64_t d = 0; d < dim; d++) out[d] += e * values[j * dim + d];
            }
            for (int64_t d = 0; d < dim; d++) out[d] /= sum;
        }
    }
}

void attention(const float *q, const float *k, const float *v, float *o, int64_t heads, int64_t seq, int64_t dim) {
    rows(q, k, v, o, heads, seq, dim);
}
