#include <math.h>
#include <stdint.h>

void rmsnorm_residual(const float *x, const float *residual, const float *weight, float *y, float *h, float eps,
                      int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols, *b = residual + r * cols; float *o = y + r * cols, *k = h + r * cols;
        float l[64] = {0}; double s = 0; int64_t c = 0;
        for (; c + 64 <= cols; c += 64) for (int q = 0; q < 64; q++) { float v = a[c + q] + b[c + q]; k[c + q] = v; l[q] += v * v; }
        for (; c < cols; c++) { float v = a[c] + b[c]; k[c] = v; s += (double)v * v; }
        for (int q = 0; q < 64; q++) s += l[q];
        float f = (float)(1 / sqrt(s / (double)cols + eps));
        for (c = 0; c < cols; c++) o[c] = k[c] * f * weight[c];
    }
}
