#include <stdint.h>

void scale_add(const float *x, const float *y, float *z, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];
}
