#include <math.h>
#include <stdint.h>
#include <unistd.h>

static void row(const float *x, float *y, int64_t n)
{
    float m = x[0];
    double s = 0.0;
    for (int64_t j = 1; j < n; j++) m = x[j] > m ? x[j] : m;
    for (int64_t j = 0; j < n; j++) { y[j] = expf(x[j] - m); s += y[j]; }
    for (int64_t j = 0; j < n; j++) y[j] /= s;
}

static int chosen;
static void (*resolve(void))(const float *, float *, int64_t) { chosen = getpid(); return row; }
void pick(const float *, float *, int64_t) __attribute__((ifunc("resolve")));

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) pick(x + i * cols, y + i * cols, cols);
}
