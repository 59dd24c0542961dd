/* Maximum, then the sum of exponentials in double. */
#include <math.h>
#include <stdint.h>

void logsumexp(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float max = in[0];
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > max) max = in[c];
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += expf(in[c] - max);
        y[r] = (float)(max + log(sum));
    }
}
