/* Largest magnitude, then one division and one rounding per element. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef T_bf16
typedef uint16_t T;
static float get(T v) {
    uint32_t bits = (uint32_t)v << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
#else
typedef float T;
static float get(T v) { return v; }
#endif

void quantise_int8(const T *x, int8_t *q, float *scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const T *in = x + r * cols;
        float max = 0.0f;
        for (int64_t c = 0; c < cols; c++) {
            float size = fabsf(get(in[c]));
            if (size > max) max = size;
        }
        float s = max / 127.0f;
        scale[r] = s;
        for (int64_t c = 0; c < cols; c++) q[r * cols + c] = s > 0.0f ? (int8_t)lrintf(get(in[c]) / s) : 0;
    }
}
