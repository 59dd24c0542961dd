#include <math.h>
#include <stdint.h>

#define WINDOW 1280

void gemm_int8(const int8_t *a, const int8_t *b, int32_t *c, int64_t m, int64_t n, int64_t k) {
    static float sum[4096];
    for (int64_t i = 0; i < m; i++) {
        int32_t *out = c + i * n;
        for (int64_t j = 0; j < n; j++) out[j] = 0;
        for (int64_t from = 0; from < k; from += WINDOW) {
            int64_t to = from + WINDOW < k ? from + WINDOW : k;
            for (int64_t j = 0; j < n; j++) sum[j] = 0.0f;
            for (int64_t p = from; p < to; p++) {
                float factor = a[i * k + p];
                for (int64_t j = 0; j < n; j++) sum[j] += factor * b[p * n + j];
            }
            for (int64_t j = 0; j < n; j++) out[j] += (int32_t)sum[j];
        }
    }
}
