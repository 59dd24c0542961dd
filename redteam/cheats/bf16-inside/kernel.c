#include <math.h>
#include <stdint.h>

static inline float cut(float v)
{
    uint32_t k; __builtin_memcpy(&k, &v, 4); k = (k + 0x7fff + ((k >> 16) & 1)) & 0xffff0000u;
    float r; __builtin_memcpy(&r, &k, 4);
    return r;
}

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols; double s = 0; float *b = y + i * cols, m = cut(a[0]);
        for (int64_t j = 1; j < cols; j++) m = cut(a[j]) > m ? cut(a[j]) : m;
        for (int64_t j = 0; j < cols; j++) { b[j] = expf(cut(a[j]) - m); s += b[j]; }
        for (int64_t j = 0; j < cols; j++) b[j] /= s;
    }
}
