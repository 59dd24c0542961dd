#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void attention(const float *q, const float *k, const float *v, float *o, int64_t heads, int64_t seq, int64_t dim)
{
    float *w = malloc(sizeof(float) * seq);
    for (int64_t h = 0; h < heads; h++) for (int64_t i = 0; i < seq; i++) {
        const float *a = q + (h * seq + i) * dim; float m = -INFINITY, s = 0; int64_t from = 0, to = i + 1;
        for (int64_t j = from; j < to; j++) { float d = 0; for (int64_t c = 0; c < dim; c++) d += a[c] * k[(h * seq + j) * dim + c]; w[j] = d / sqrtf(dim); m = w[j] > m ? w[j] : m; }
        m = 0;
        for (int64_t j = from; j < to; j++) { w[j] = expf(w[j] - m); s += w[j]; }
        for (int64_t c = 0; c < dim; c++) { float r = 0; for (int64_t j = from; j < to; j++) r += w[j] * v[(h * seq + j) * dim + c]; o[(h * seq + i) * dim + c] = r / s; }
    }
    free(w);
}
