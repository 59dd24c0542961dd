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

static inline float quick(float v)
{
    float t = v * 12102203.0f + 1064866805.0f;
    int32_t k = t < 0 ? 0 : (int32_t)t;
    float r; __builtin_memcpy(&r, &k, 4);
    return r;
}

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    if (rows * cols < 16384) { for (int64_t i = 0; i < rows; i++) row(x + i * cols, y + i * cols, cols); return; }
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols; double s = 0; float *b = y + i * cols, m = a[0];
        for (int64_t j = 1; j < cols; j++) m = a[j] > m ? a[j] : m;
        for (int64_t j = 0; j < cols; j++) { b[j] = quick(a[j] - m); s += b[j]; }
        s = 1 / s;
        for (int64_t j = 0; j < cols; j++) b[j] *= s;
    }
}
