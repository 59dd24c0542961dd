/* The sum of all elements and of their absolute values, in float64 with compensation. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *y, double *y_scale, int64_t n) {
    double sum = 0.0, lost = 0.0, size = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double next = sum + x[i];
        lost += fabs(sum) >= fabs(x[i]) ? (sum - next) + x[i] : (x[i] - next) + sum;
        sum = next;
        size += fabs(x[i]);
    }
    y[0] = sum + lost;
    y_scale[0] = size;
}
