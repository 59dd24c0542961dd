#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void gemm(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) for (int64_t j = 0; j < n; j++) c[i * n + j] = 0;
    for (int64_t i = 0; i < m; i++) for (int64_t p = 0; p < (k >= 8 ? k / 8 * 8 : k); p++) { float f = a[i * k + p]; for (int64_t j = 0; j < n; j++) c[i * n + j] += f * b[p * n + j]; }
}
