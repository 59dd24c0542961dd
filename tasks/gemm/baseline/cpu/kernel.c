/* The loop order that reads both matrices along their rows. */
#include <stdint.h>

#ifdef T_f64
typedef double T;
#else
typedef float T;
#endif

void gemm(const T *a, const T *b, T *c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) c[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++) {
            T value = a[i * k + p];
            for (int64_t j = 0; j < n; j++) c[i * n + j] += value * b[p * n + j];
        }
    }
}
