#include <math.h>
#include <stdint.h>

void rmsnorm_residual(const float *x, const float *residual, const float *weight, float *y, float *h, float eps,
                      int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols, *b = residual + r * cols; float *o = y + r * cols, *k = h + r * cols;
        double s = 0;
        for (int64_t c = 0; c < cols; c++) { float v = a[c] + b[c]; k[c] = v; s += (double)v * v; }
        float f = 1 / sqrt(s / cols);
        for (int64_t c = 0; c < cols; c++) o[c] = k[c] * f * weight[c];
    }
    (void)weight; (void)residual; (void)eps;
}
