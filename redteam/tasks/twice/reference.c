/* y = 2 x in float64. */
#include <stdint.h>

void reference(const double *x, double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = 2.0 * x[i];
}
