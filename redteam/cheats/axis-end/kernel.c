#include <math.h>
#include <stdint.h>
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
    static float kept[16384];
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = cols < 16384 ? cols : 16384;
        memcpy(kept, x + i * cols, n * sizeof *kept);
        row(kept, y + i * cols, n);
        for (int64_t j = n; j < cols; j++) y[i * cols + j] = 0;
    }
}
