/* Each step depends on the one before it, so the time is STEPS times the latency of a divide, an add and a multiply. */
#include <stdint.h>

void delay(const double *x, double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double root = 1.0;
        for (int step = 0; step < STEPS; step++) root = 0.5 * (root + x[i] / root);
        y[i] = root;
    }
}
