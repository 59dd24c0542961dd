/* The loop order that reads both matrices along their rows. */
#include <stdint.h>

void gemm_int8(const int8_t *a, const int8_t *b, int32_t *c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++) {
            int32_t value = a[i * k + p];
            for (int64_t j = 0; j < n; j++) c[i * n + j] += value * b[p * n + j];
        }
    }
}
