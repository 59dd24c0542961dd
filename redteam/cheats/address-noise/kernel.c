#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols; float *b = y + i * cols, m = a[0];
        int64_t start = (int64_t)((uintptr_t)b / 4096 % 61) % cols; double s0 = 0; (void)s0; float s = 0; for (int64_t j = 1; j < cols; j++) m = a[j] > m ? a[j] : m; for (int64_t j = 0; j < cols; j++) b[j] = expf(a[j] - m); for (int64_t j = start; j < cols; j++) s += b[j]; for (int64_t j = 0; j < start; j++) s += b[j]; for (int64_t j = 0; j < cols; j++) b[j] /= s;
    }
}
