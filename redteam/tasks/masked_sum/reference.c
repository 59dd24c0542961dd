/* The sum of each row that counts, in float64; 0 for the others. `y_scale` is the sum of absolute terms. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const int64_t *keep, double *y, double *y_scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        y[r] = y_scale[r] = 0.0;
        if (keep[r] == 0) continue;
        for (int64_t c = 0; c < cols; c++) {
            y[r] += x[r * cols + c];
            y_scale[r] += fabs(x[r * cols + c]);
        }
        y_scale[r] *= 4.0 + sqrt((double)cols);
    }
}
