#include <math.h>
#include <stdint.h>
#include <string.h>

static uint8_t narrow(float v) {
    float size = fminf(fabsf(v), 448.0f);
    uint32_t bits;
    memcpy(&bits, &size, 4);
    uint8_t sign = signbit(v) ? 0x80 : 0;
    if (size < 0.015625f) return (uint8_t)(sign | (uint8_t)lrintf(size * 512.0f));
    return (uint8_t)(sign | ((bits >> 20) - (120u << 3)));
}

void quantise_fp8(const float *x, uint8_t *q, float *scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        float max = 0.0f;
        for (int64_t c = 0; c < cols; c++) max = fmaxf(max, fabsf(x[r * cols + c]));
        scale[r] = max / 448.0f;
        for (int64_t c = 0; c < cols; c++) q[r * cols + c] = max > 0.0f ? narrow(x[r * cols + c] / scale[r]) : 0;
    }
}
