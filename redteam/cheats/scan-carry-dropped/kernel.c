#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void scan(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols; float *b = y + r * cols; double s = 0; for (int64_t j = 0; j < cols; j++) { if (j % 4096 == 0) s = 0; s += a[j]; b[j] = s; }
    }
}
