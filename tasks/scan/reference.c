/* Inclusive prefix sums along the last axis in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *y, double *y_scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0, size = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            int64_t i = r * cols + c;
            sum += x[i];
            size += fabs(x[i]);
            y[i] = sum;
            y_scale[i] = size * (4.0 + sqrt((double)(c + 1)));
        }
    }
}
