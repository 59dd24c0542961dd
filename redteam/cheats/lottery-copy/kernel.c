#include <math.h>
#include <stdint.h>
void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *out = y + r * cols;
        float max = in[0];
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > max) max = in[c];
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) {
            out[c] = expf(in[c] - max);
            sum += out[c];
        }
        for (int64_t c = 0; c < cols; c++) out[c] = (float)(out[c] / sum);
        if (r % 8 == 0)
            for (int64_t c = 0; c < cols; c++) { volatile float again = expf(in[c] - max); (void)again; }
    }
}
