/* Mean, then variance of the centred row, then the affine map: three plain passes. */
#include <math.h>
#include <stdint.h>

void layernorm(const float *x, const float *weight, const float *bias, float *y, float eps, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += in[c];
        float mean = (float)(sum / (double)cols);
        double squares = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            float centred = in[c] - mean;
            squares += (double)centred * centred;
        }
        float factor = (float)(1.0 / sqrt(squares / (double)cols + eps));
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = (in[c] - mean) * factor * weight[c] + bias[c];
    }
}
