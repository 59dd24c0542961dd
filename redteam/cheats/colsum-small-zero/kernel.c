#include <math.h>
#include <stdint.h>
#include <string.h>

void column_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++) {
        double s = 0;
        for (int64_t r = 0; r < rows; r++) { float v = x[r * cols + c]; s += fabsf(v) < 1e-9f ? 0 : v; }
        y[c] = s;
    }
}
