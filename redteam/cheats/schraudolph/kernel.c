#include <math.h>
#include <stdint.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols; double s = 0; float *b = y + i * cols, m = a[0];
        for (int64_t j = 1; j < cols; j++) m = a[j] > m ? a[j] : m;
        for (int64_t j = 0; j < cols; j++) {
            float t = (a[j] - m) * 12102203.0f + 1064866805.0f;
            int32_t k = t < 0 ? 0 : (int32_t)t;
            __builtin_memcpy(&b[j], &k, 4); s += b[j];
        }
        s = 1 / s;
        for (int64_t j = 0; j < cols; j++) b[j] *= s;
    }
}
