#include <math.h>
#include <stdint.h>
/* exp for arguments up to 0: range reduction by a rounding constant, polynomial of degree 6, about 1 ulp. */
static inline float expq(float v)
{
    v = v < -126.0f ? -126.0f : v;
    float k = v * 1.44269504f + 12582912.0f;
    int32_t n; __builtin_memcpy(&n, &k, 4); n -= 0x4b400000;
    k -= 12582912.0f;
    float f = v - k * 0.693359375f; f -= k * -2.12194440e-4f;
    float p = 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f; p = p * f + 4.1665795894e-2f; p = p * f + 1.6666665459e-1f; p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    int32_t h = n >> 1, a = (h + 127) << 23, b = (n - h + 127) << 23;
    float s, t; __builtin_memcpy(&s, &a, 4); __builtin_memcpy(&t, &b, 4);
    return p * s * t;
}

static inline float top(const float *a, int64_t n)
{
    float l[16], m = a[0];
    for (int k = 0; k < 16; k++) l[k] = a[0];
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) for (int k = 0; k < 16; k++) l[k] = a[j + k] > l[k] ? a[j + k] : l[k];
    for (; j < n; j++) m = a[j] > m ? a[j] : m;
    for (int k = 0; k < 16; k++) m = l[k] > m ? l[k] : m;
    return m;
}
static inline float spread(const float *a, float *b, int64_t n, float m)
{
    float l[16] = {0}, s = 0;
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) for (int k = 0; k < 16; k++) { float e = expq(a[j + k] - m); b[j + k] = e; l[k] += e; }
    for (; j < n; j++) { b[j] = expq(a[j] - m); s += b[j]; }
    for (int k = 0; k < 16; k++) s += l[k];
    return s;
}
static inline void scale(float *b, int64_t n, float f) { for (int64_t j = 0; j < n; j++) b[j] *= f; }

static inline void fast_row(const float *a, float *b, int64_t n)
{
    float s = spread(a, b, n, top(a, n));
    scale(b, n, 1 / s);
}


__attribute__((target_clones("avx512f", "avx2", "default"), noinline)) static void all(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) fast_row(x + i * cols, y + i * cols, cols);
}

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    all(x, y, rows, cols);
}
