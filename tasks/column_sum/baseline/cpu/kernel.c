/* One column after the other, summed in double. */
#include <stdint.h>

void column_sum(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t c = 0; c < cols; c++) {
        double sum = 0.0;
        for (int64_t r = 0; r < rows; r++) sum += x[r * cols + c];
        y[c] = (float)sum;
    }
}
