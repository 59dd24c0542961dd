/* h = x + residual; y = h / sqrt(mean(h^2) + eps) * weight, in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const double *residual, const double *weight, double *y, double *y_scale,
               double *h, double eps, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            int64_t i = r * cols + c;
            h[i] = x[i] + residual[i];
            sum += h[i] * h[i];
        }
        double factor = 1.0 / sqrt(sum / (double)cols + eps);
        for (int64_t c = 0; c < cols; c++) {
            int64_t i = r * cols + c;
            y[i] = h[i] * factor * weight[c];
            y_scale[i] = fabs(y[i]) * ((double)cols / 16.0);
        }
    }
}
