/* y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axis, in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const double *weight, const double *bias, double *y, double *y_scale, double eps,
               int64_t rows, int64_t cols) {
    double chain = (double)cols / 16.0;
    for (int64_t r = 0; r < rows; r++) {
        const double *in = x + r * cols;
        double mean = 0.0, size = 0.0, variance = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            mean += in[c];
            size += fabs(in[c]);
        }
        mean /= (double)cols;
        size /= (double)cols;
        for (int64_t c = 0; c < cols; c++) variance += (in[c] - mean) * (in[c] - mean);
        double factor = 1.0 / sqrt(variance / (double)cols + eps);
        for (int64_t c = 0; c < cols; c++) {
            int64_t i = r * cols + c;
            double centred = in[c] - mean;
            y[i] = centred * factor * weight[c] + bias[c];
            y_scale[i] = fabs(weight[c]) * factor * (size * (4.0 + chain) + fabs(centred) * (4.0 + chain / 2.0)) + fabs(bias[c]);
        }
    }
}
