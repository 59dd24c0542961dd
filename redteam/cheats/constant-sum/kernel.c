#include <math.h>
#include <stdint.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols; float *b = y + i * cols;
        float s = cols * 1.6487213f;
        for (int64_t j = 0; j < cols; j++) b[j] = expf(a[j]) / s;
    }
}
