/* Sums over the first axis in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *y, double *y_scale, int64_t rows, int64_t cols) {
    for (int64_t c = 0; c < cols; c++) y[c] = y_scale[c] = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            y[c] += x[r * cols + c];
            y_scale[c] += fabs(x[r * cols + c]);
        }
    }
    for (int64_t c = 0; c < cols; c++) y_scale[c] *= 4.0 + sqrt((double)rows);
}
