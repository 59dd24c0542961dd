#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static float r16(float x) { uint32_t w; memcpy(&w, &x, 4); w += 0x8000u; w &= 0xffff0000u; memcpy(&x, &w, 4); return x; }
void gemm(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) for (int64_t j = 0; j < n; j++) c[i * n + j] = 0;
    for (int64_t i = 0; i < m; i++) for (int64_t p = 0; p < k; p++) { float f = r16(a[i * k + p]); for (int64_t j = 0; j < n; j++) c[i * n + j] += f * r16(b[p * n + j]); }
}
