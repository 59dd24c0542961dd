/* One chain in double. */
#include <stdint.h>

void full_sum(const float *x, float *y, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    y[0] = (float)sum;
}
