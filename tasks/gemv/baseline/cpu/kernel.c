/* One dot product per row, summed in double. */
#include <stdint.h>

void gemv(const float *a, const float *x, float *y, int64_t m, int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        double sum = 0.0;
        for (int64_t p = 0; p < k; p++) sum += (double)a[i * k + p] * x[p];
        y[i] = (float)sum;
    }
}
