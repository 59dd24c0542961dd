#include <math.h>
#include <stdint.h>
#include <string.h>
typedef float wide __attribute__((vector_size(64), aligned(4)));

void twice(const float *x, float *y, int64_t n)
{
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (int k = 0; k < 4; k++) {
            wide v;
            memcpy(&v, x + i + 16 * k, sizeof v);
            v += v;
            memcpy(y + i + 16 * k, &v, sizeof v);
        }
    for (; i < n; i++) y[i] = x[i] + x[i];
}
