/* Add, reduce in double, scale: two plain passes per row. */
#include <math.h>
#include <stdint.h>

void rmsnorm_residual(const float *x, const float *residual, const float *weight, float *y, float *h, float eps,
                      int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            float v = x[r * cols + c] + residual[r * cols + c];
            h[r * cols + c] = v;
            sum += (double)v * v;
        }
        float factor = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = h[r * cols + c] * factor * weight[c];
    }
}
