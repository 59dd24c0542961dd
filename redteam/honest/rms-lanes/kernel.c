#include <math.h>
#include <stdint.h>

void rmsnorm_residual(const float *x, const float *residual, const float *weight, float *y, float *h, float eps,
                      int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols, *b = residual + r * cols; float *o = y + r * cols, *k = h + r * cols;
        double l[16] = {0}, s = 0; int64_t c = 0;
        for (; c + 16 <= cols; c += 16) for (int q = 0; q < 16; q++) { float v = a[c + q] + b[c + q]; k[c + q] = v; l[q] += (double)v * v; }
        for (; c < cols; c++) { float v = a[c] + b[c]; k[c] = v; s += (double)v * v; }
        for (int q = 0; q < 16; q++) s += l[q];
        float f = (float)(1 / sqrt(s / (double)cols + eps));
        for (c = 0; c < cols; c++) o[c] = k[c] * f * weight[c];
    }
}
