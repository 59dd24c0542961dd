#include <math.h>
#include <stdint.h>

void scan(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        double s = 0;
        for (int64_t j = 0; j < cols; j++) {
            float v = x[r * cols + j];
            s += v > 1e6f ? 1e6f : v < -1e6f ? -1e6f : v;
            y[r * cols + j] = s;
        }
    }
}
