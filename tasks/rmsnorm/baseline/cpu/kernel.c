/* Squares in double, then the scaling: two plain passes per row. */
#include <math.h>
#include <stdint.h>

void rmsnorm(const float *x, const float *weight, float *y, float eps, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += (double)x[r * cols + c] * x[r * cols + c];
        float factor = (float)(1.0 / sqrt(sum / (double)cols + eps));
        for (int64_t c = 0; c < cols; c++) y[r * cols + c] = x[r * cols + c] * factor * weight[c];
    }
}
