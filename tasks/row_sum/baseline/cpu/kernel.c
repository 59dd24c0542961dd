/* One chain per row, in double. */
#include <stdint.h>

void row_sum(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += x[r * cols + c];
        y[r] = (float)sum;
    }
}
