/* Inputs, and probes of what the machine can do: reads, writes, copies, multiply-adds. Built by native.py. */
#include <stdint.h>
#include <string.h>

static uint64_t state;
static double even(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

static uint16_t bf16(double v) {
    float f = (float)v;
    uint32_t b;
    memcpy(&b, &f, 4);
    return (uint16_t)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
static uint16_t f16(double v) {
    _Float16 h = (_Float16)v;
    uint16_t b;
    memcpy(&b, &h, 2);
    return b;
}

/* `kind` 0 is bell-shaped with mean a and deviation b (the sum of twelve even numbers), 1 even from a to b, 2 whole numbers from
 * a to b. */
void fill(const char *dtype, void *p, int64_t n, int kind, double a, double b, uint64_t seed) {
    state = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    for (int64_t i = 0; i < n; i++) {
        double v;
        if (kind == 0) {
            v = -6;
            for (int k = 0; k < 12; k++) v += even();
            v = a + b * v;
        } else {
            v = kind == 1 ? a + (b - a) * even() : (double)(int64_t)(a + (b - a + 1) * even());
        }
        if (!strcmp(dtype, "f32")) ((float *)p)[i] = (float)v;
        else if (!strcmp(dtype, "f64")) ((double *)p)[i] = v;
        else if (!strcmp(dtype, "bf16")) ((uint16_t *)p)[i] = bf16(v);
        else if (!strcmp(dtype, "f16")) ((uint16_t *)p)[i] = f16(v);
        else if (!strcmp(dtype, "i64")) ((int64_t *)p)[i] = (int64_t)v;
        else if (!strcmp(dtype, "i32")) ((int32_t *)p)[i] = (int32_t)v;
        else ((int8_t *)p)[i] = (int8_t)v;
    }
}

typedef double line __attribute__((vector_size(64)));

double probe_read(const line *p, int64_t bytes) {
    line s[8] = {0};
    const int64_t n = bytes / 64;
    for (int64_t i = 0; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) s[k] += p[i + k];
    for (int k = 1; k < 8; k++) s[0] += s[k];
    return s[0][0] + s[0][1] + s[0][2] + s[0][3] + s[0][4] + s[0][5] + s[0][6] + s[0][7];
}

static void past(line *to, line v) {
#if defined(__AVX512F__) && !defined(__clang__)
    __builtin_ia32_movntpd512((double *)to, v);
#else
    *to = v;
#endif
}
static void settle(void) {
#ifdef __SSE2__
    __builtin_ia32_sfence();
#endif
}
void probe_write(line *to, int64_t bytes) {
    for (int64_t i = 0; i < bytes / 64; i++) past(to + i, (line){0});
    settle();
}
void probe_copy(const line *from, line *to, int64_t bytes) {
    for (int64_t i = 0; i < bytes / 64; i++) past(to + i, from[i]);
    settle();
}
void probe_memcpy(const line *from, line *to, int64_t bytes) { memcpy(to, from, (size_t)bytes); }

/* Twelve independent chains of multiply-adds on vectors of BITS; each turn is 12 * BITS / 32 of them. */
#define CHAINS(BITS) \
    typedef float v##BITS __attribute__((vector_size(BITS / 8))); \
    float probe_fma_##BITS(int64_t turns, float a, float b) { \
        v##BITS s[12], x = a - (v##BITS){0}, y = b - (v##BITS){0}; \
        for (int k = 0; k < 12; k++) s[k] = x * (float)k; \
        for (int64_t i = 0; i < turns; i++) \
            _Pragma("GCC unroll 12") for (int k = 0; k < 12; k++) s[k] = s[k] * x + y; \
        for (int k = 1; k < 12; k++) s[0] += s[k]; \
        return s[0][0]; \
    }
CHAINS(128)
CHAINS(256)
CHAINS(512)
