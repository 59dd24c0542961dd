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

static inline float sigmoid(float g)
{
    float e = expq(g < 0 ? g : -g), d = 1 / (1 + e);
    return g < 0 ? e * d : d;
}

void silu_mul(const float *gate, const float *up, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
}
