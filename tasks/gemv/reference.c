/* y = a x in float64, row-major. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *a, const double *x, double *y, double *y_scale, int64_t m, int64_t k) {
    double chain = 4.0 + sqrt((double)k);
    for (int64_t i = 0; i < m; i++) {
        double sum = 0.0, size = 0.0;
        for (int64_t p = 0; p < k; p++) {
            sum += a[i * k + p] * x[p];
            size += fabs(a[i * k + p] * x[p]);
        }
        y[i] = sum;
        y_scale[i] = size * chain;
    }
}
