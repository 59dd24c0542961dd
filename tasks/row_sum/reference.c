/* Sums over the last axis in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *y, double *y_scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0, size = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            sum += x[r * cols + c];
            size += fabs(x[r * cols + c]);
        }
        y[r] = sum;
        y_scale[r] = size * (4.0 + sqrt((double)cols));
    }
}
