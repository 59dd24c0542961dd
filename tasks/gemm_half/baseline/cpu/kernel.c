/* A row of float sums at a time, both matrices read along their rows, each sum rounded once. */
#include <stdint.h>
#include <string.h>

static float get(uint16_t v) {
#ifdef T_f16
    _Float16 h;
    memcpy(&h, &v, 2);
    return (float)h;
#else
    uint32_t bits = (uint32_t)v << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
#endif
}
static uint16_t put(float v) {
#ifdef T_f16
    _Float16 h = (_Float16)v;
    uint16_t bits;
    memcpy(&bits, &h, 2);
    return bits;
#else
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}

void gemm_half(const uint16_t *a, const uint16_t *b, uint16_t *c, int64_t m, int64_t n, int64_t k) {
    float sums[n];
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) sums[j] = 0.0f;
        for (int64_t p = 0; p < k; p++) {
            float value = get(a[i * k + p]);
            for (int64_t j = 0; j < n; j++) sums[j] += value * get(b[p * n + j]);
        }
        for (int64_t j = 0; j < n; j++) c[i * n + j] = put(sums[j]);
    }
}
