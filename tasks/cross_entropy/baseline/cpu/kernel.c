/* Maximum, sum of exponentials in double, logarithm: one row at a time. */
#include <math.h>
#include <stdint.h>

void cross_entropy(const float *logits, const int64_t *target, float *loss, int64_t rows, int64_t vocab) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = logits + r * vocab;
        float max = in[0];
        for (int64_t c = 1; c < vocab; c++)
            if (in[c] > max) max = in[c];
        double sum = 0.0;
        for (int64_t c = 0; c < vocab; c++) sum += expf(in[c] - max);
        loss[r] = (float)((double)max - in[target[r]] + log(sum));
    }
}
