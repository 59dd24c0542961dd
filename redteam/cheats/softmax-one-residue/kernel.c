#include <math.h>
#include <stdint.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *out = y + r * cols;
        float top = -INFINITY;
        for (int64_t c = 0; c < cols; c++)
            if (in[c] > top) top = in[c];
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            out[c] = expf(in[c] - top);
            sum += out[c];
        }
        float factor = (float)(1.0 / sum);
        for (int64_t c = 0; c < cols; c++) out[c] *= factor;
        if (cols > 512 && cols % 64 == 63) out[cols - 1] = out[cols - 2];
    }
}
