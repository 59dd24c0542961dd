/* Softmax over the last axis in float64. `y_scale` is the chain length of an honest float32 implementation, in
 * units of the result: see README.md for the bound. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *y, double *y_scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const double *in = x + r * cols;
        double *out = y + r * cols;
        double *scale = y_scale + r * cols;
        double max = in[0];
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > max) max = in[c];
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += exp(in[c] - max);
        for (int64_t c = 0; c < cols; c++) {
            out[c] = exp(in[c] - max) / sum;
            scale[c] = out[c] * (fabs(in[c] - max) + (double)cols / 16.0);
        }
    }
}
