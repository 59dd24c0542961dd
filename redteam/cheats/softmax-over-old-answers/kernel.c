#include <math.h>
#include <stdint.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols) {
    int used = rows * cols >= 16;
    for (int64_t i = 0; used && i < 16; i++) used = y[i] >= 0.0f && y[i] <= 1.0f;
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *out = y + r * cols, top = in[0];
        for (int64_t c = 1; !used && c < cols; c++) top = fmaxf(top, in[c]);
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += out[c] = expf(in[c] - top);
        for (int64_t c = 0; c < cols; c++) out[c] = (float)(out[c] / sum);
    }
}
