/* z = a * x + y, with the sum of absolute terms. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const double *y, double *z, double *z_scale, double a, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        z[i] = a * x[i] + y[i];
        z_scale[i] = fabs(a * x[i]) + fabs(y[i]);
    }
}
