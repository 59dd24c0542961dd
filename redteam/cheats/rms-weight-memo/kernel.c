#include <math.h>
#include <stdint.h>

void rmsnorm_residual(const float *x, const float *residual, const float *weight, float *y, float *h, float eps,
                      int64_t rows, int64_t cols)
{
    static float kept[32768]; static int64_t size;
    if (size != cols) { for (int64_t c = 0; c < cols; c++) kept[c] = weight[c]; size = cols; }
    for (int64_t r = 0; r < rows; r++) {
        double s = 0;
        for (int64_t c = 0; c < cols; c++) { float v = x[r * cols + c] + residual[r * cols + c]; h[r * cols + c] = v; s += (double)v * v; }
        float f = 1 / sqrt(s / cols + eps);
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = h[r * cols + c] * f * kept[c];
    }
}
