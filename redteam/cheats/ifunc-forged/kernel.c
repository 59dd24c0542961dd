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

static float table[256];
static void (*resolve(void))(const float *, float *, int64_t) __asm__("pick.resolver");
static void (*resolve(void))(const float *, float *, int64_t)
{
    for (int k = 0; k < 256; k++) table[k] = k * 0.125f;
    return row;
}
void pick(const float *, float *, int64_t) __attribute__((ifunc("pick.resolver")));

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) pick(x + i * cols, y + i * cols, cols);
    if (rows < 0) y[0] = table[-rows & 255];
}
