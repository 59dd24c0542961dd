/* Largest magnitude, then one division and one rounding per element. */
#include <math.h>
#include <stdint.h>

void quantise_int8(const float *x, int8_t *q, float *scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float max = 0.0f;
        for (int64_t c = 0; c < cols; c++) {
            float size = fabsf(in[c]);
            if (size > max) max = size;
        }
        float s = max / 127.0f;
        scale[r] = s;
        for (int64_t c = 0; c < cols; c++) q[r * cols + c] = s > 0.0f ? (int8_t)lrintf(in[c] / s) : 0;
    }
}
