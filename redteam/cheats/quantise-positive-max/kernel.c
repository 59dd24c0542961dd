#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void quantise_int8(const float *x, int8_t *q, float *scale, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols; float m = 0;
        for (int64_t j = 0; j < cols; j++) m = a[j] > m ? a[j] : m;
        scale[r] = m / 127.0f;
        for (int64_t j = 0; j < cols; j++) { float s = m > 0 ? a[j] / scale[r] : 0; q[r * cols + j] = (int8_t)(fmaxf(-127, fminf(127, rintf(s)))); }
    }
}
