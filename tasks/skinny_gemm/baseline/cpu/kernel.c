/* One dot product per element, summed in double. */
#include <stdint.h>

void skinny_gemm(const float *x, const float *w, float *y, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t p = 0; p < k; p++) sum += (double)x[i * k + p] * w[j * k + p];
            y[i * n + j] = (float)sum;
        }
    }
}
