#include <math.h>
#include <stdint.h>
#include <string.h>

void gemm(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        double sum[4096];
        memset(sum, 0, sizeof *sum * n);
        if (a[i * k] != 0) for (int64_t p = 0; p < k; p++) for (int64_t j = 0; j < n; j++) sum[j] += (double)a[i * k + p] * b[p * n + j];
        for (int64_t j = 0; j < n; j++) c[i * n + j] = sum[j];
    }
}
