#include <math.h>
#include <stdint.h>
#include <string.h>

static uint8_t narrow(float v) {
    float size = fminf(fabsf(v), 448.0f);
    uint32_t bits;
    memcpy(&bits, &size, 4);
    uint8_t sign = signbit(v) ? 0x80 : 0;
    if (size < 0.015625f) return (uint8_t)(sign | (uint8_t)lrintf(size * 512.0f));
    bits += 0x7ffff + ((bits >> 20) & 1);
    return (uint8_t)(sign | ((bits >> 20) - (120u << 3)));
}

static float in_half(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    memcpy(&v, &bits, 4);
    return v;
}

void rmsnorm_quantise(const float *x, const float *weight, uint8_t *q, float *scale, float eps, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += (double)in[c] * in[c];
        float factor = (float)(1.0 / sqrt(sum / (double)cols + eps)), max = 0.0f;
        for (int64_t c = 0; c < cols; c++) max = fmaxf(max, fabsf(in[c] * factor * weight[c]));
        scale[r] = max / 448.0f;
        for (int64_t c = 0; c < cols; c++)
            q[r * cols + c] = max > 0.0f ? narrow(in_half(in[c] * factor * weight[c]) / scale[r]) : 0;
    }
}
