/* y = x w^T in float64: few rows of x, all matrices row-major. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const double *w, double *y, double *y_scale, int64_t m, int64_t n, int64_t k) {
    double chain = 4.0 + sqrt((double)k);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0, size = 0.0;
            for (int64_t p = 0; p < k; p++) {
                sum += x[i * k + p] * w[j * k + p];
                size += fabs(x[i * k + p] * w[j * k + p]);
            }
            y[i * n + j] = sum;
            y_scale[i * n + j] = size * chain;
        }
    }
}
