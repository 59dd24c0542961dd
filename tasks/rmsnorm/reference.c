/* y = x / sqrt(mean(x^2) + eps) * weight, in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const double *weight, double *y, double *y_scale, double eps, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const double *in = x + r * cols;
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += in[c] * in[c];
        double factor = 1.0 / sqrt(sum / (double)cols + eps);
        for (int64_t c = 0; c < cols; c++) {
            y[r * cols + c] = in[c] * factor * weight[c];
            y_scale[r * cols + c] = fabs(y[r * cols + c]) * ((double)cols / 16.0);
        }
    }
}
