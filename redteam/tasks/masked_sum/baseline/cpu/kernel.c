#include <stdint.h>

void masked_sum(const float *x, const int32_t *keep, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += x[r * cols + c];
        y[r] = keep[r] ? (float)sum : 0.0f;
    }
}
