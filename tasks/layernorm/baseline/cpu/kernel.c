/* Mean, then variance of the centred row, then the affine map: three plain passes. */
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
static T put(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    return (T)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
#else
typedef float T;
static float get(T v) { return v; }
static T put(float v) { return v; }
#endif

void layernorm(const T *x, const T *weight, const T *bias, T *y, float eps, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const T *in = x + r * cols;
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += get(in[c]);
        float mean = (float)(sum / (double)cols);
        double squares = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            float centred = get(in[c]) - mean;
            squares += (double)centred * centred;
        }
        float factor = (float)(1.0 / sqrt(squares / (double)cols + eps));
        for (int64_t c = 0; c < cols; c++)
            y[r * cols + c] = put((get(in[c]) - mean) * factor * get(weight[c]) + get(bias[c]));
    }
}
