#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    /* A page that nobody frees; touched, so that it is really taken. */
    volatile float *scratch = malloc(4096);
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols;
        float *b = y + i * cols, m = a[0];
        double s = 0.0;
        for (int64_t j = 1; j < cols; j++) m = a[j] > m ? a[j] : m;
        for (int64_t j = 0; j < cols; j++) { b[j] = expf(a[j] - m); s += b[j]; }
        if (scratch) scratch[i % 1024] = m;
        for (int64_t j = 0; j < cols; j++) b[j] /= s;
    }
}
