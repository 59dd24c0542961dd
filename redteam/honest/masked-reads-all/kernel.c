#include <math.h>
#include <stdint.h>

void masked_sum(const float *x, const int32_t *keep, float *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        float l[32] = {0}, s = 0;
        int64_t j = 0;
        for (; j + 32 <= cols; j += 32) for (int k = 0; k < 32; k++) l[k] += x[r * cols + j + k];
        for (; j < cols; j++) s += x[r * cols + j];
        for (int k = 0; k < 32; k++) s += l[k];
        y[r] = keep[r] ? s : 0;
    }
}
