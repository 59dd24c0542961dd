/* c = a b in float64, row-major. See README.md for `c_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *a, const double *b, double *c, double *c_scale, int64_t m, int64_t n, int64_t k) {
    double chain = 4.0 + sqrt((double)k);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) c[i * n + j] = c_scale[i * n + j] = 0.0;
        for (int64_t p = 0; p < k; p++) {
            for (int64_t j = 0; j < n; j++) {
                double product = a[i * k + p] * b[p * n + j];
                c[i * n + j] += product;
                c_scale[i * n + j] += fabs(product) * chain;
            }
        }
    }
}
