#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void gemm(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k)
{
    double *row = malloc(sizeof(double) * n);
    for (int64_t i = 0; i < m; i++) {
        memset(row, 0, sizeof(double) * n);
        for (int64_t p = 0; p < k; p++) { double f = a[i * k + p]; for (int64_t j = 0; j < n; j++) row[j] += f * b[p * n + j]; }
        for (int64_t j = 0; j < n; j++) c[i * n + j] = row[j];
    }
    free(row);
}
