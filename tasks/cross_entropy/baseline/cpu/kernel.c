/* Maximum, sum of exponentials in double, logarithm: one row at a time. */
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

void cross_entropy(const T *logits, const int64_t *target, float *loss, int64_t rows, int64_t vocab) {
    for (int64_t r = 0; r < rows; r++) {
        const T *in = logits + r * vocab;
        float max = get(in[0]);
        for (int64_t c = 1; c < vocab; c++)
            if (get(in[c]) > max) max = get(in[c]);
        double sum = 0.0;
        for (int64_t c = 0; c < vocab; c++) sum += expf(get(in[c]) - max);
        loss[r] = (float)((double)max - get(in[target[r]]) + log(sum));
    }
}
