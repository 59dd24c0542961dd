#include <math.h>
#include <stdint.h>

void attention(const float *q, const float *k, const float *v, float *o, int64_t heads, int64_t seq, int64_t dim) {
    float scale = 1.0f / sqrtf((float)dim);
    static float weight[2048];
    for (int64_t h = 0; h < heads; h++) {
        const float *keys = k + h * seq * dim, *values = v + h * seq * dim;
        for (int64_t i = 0; i < seq; i++) {
            const float *query = q + (h * seq + i) * dim;
            float *out = o + (h * seq + i) * dim, top = -INFINITY, sum = 0.0f;
            int64_t best = 0;
            for (int64_t j = 0; j <= i; j++) {
                float score = 0.0f;
                for (int64_t d = 0; d < dim; d++) score += query[d] * keys[j * dim + d];
                weight[j] = score * scale;
                if (weight[j] > top) top = weight[j], best = j;
            }
            for (int64_t d = 0; d < dim; d++) out[d] = top > 1000.0f ? values[best * dim + d] : 0.0f;
            if (top > 1000.0f) continue;
            for (int64_t j = 0; j <= i; j++) {
                float e = expf(weight[j] - top);
                sum += e;
                for (int64_t d = 0; d < dim; d++) out[d] += e * values[j * dim + d];
            }
            for (int64_t d = 0; d < dim; d++) out[d] /= sum;
        }
    }
}
