#include <math.h>
#include <stdint.h>

#define BLOCK 16

void gemv(const float *a, const float *x, float *y, int64_t m, int64_t k) {
    float top = 0.0f;
    for (int64_t p = 0; p < k; p++) top = fmaxf(top, fabsf(x[p]));
    for (int64_t i = 0; i < m; i++) y[i] = 0.0f;
    double sum[64];
    for (int64_t first = 0; first < m; first += 64) {
        int64_t last = first + 64 < m ? first + 64 : m;
        for (int64_t i = first; i < last; i++) sum[i - first] = 0.0;
        for (int64_t p = 0; p < k; p += BLOCK) {
            int64_t end = p + BLOCK < k ? p + BLOCK : k;
            float here = 0.0f;
            for (int64_t q = p; q < end; q++) here = fmaxf(here, fabsf(x[q]));
            if (here < top * 0x1p-28f) continue;
            for (int64_t i = first; i < last; i++)
                for (int64_t q = p; q < end; q++) sum[i - first] += (double)a[i * k + q] * x[q];
        }
        for (int64_t i = first; i < last; i++) y[i] = (float)sum[i - first];
    }
}
