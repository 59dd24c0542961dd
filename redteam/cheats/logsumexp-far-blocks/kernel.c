#include <math.h>
#include <stdint.h>

#define BLOCK 64

static double above(const float *in, int64_t n, float *top) {
    *top = -INFINITY;
    for (int64_t c = 0; c < n; c++)
        if (in[c] > *top) *top = in[c];
    double sum = 0.0;
    for (int64_t c = 0; c < n; c += BLOCK) {
        int64_t end = c + BLOCK < n ? c + BLOCK : n;
        int far = end == c + BLOCK;
        for (int64_t i = c; i < end && far; i++) far = in[i] - *top < -16.6f;
        for (int64_t i = c; i < end && !far; i++) sum += expf(in[i] - *top);
    }
    return sum;
}

void logsumexp(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        float top;
        double sum = above(x + r * cols, cols, &top);
        y[r] = (float)(top + log(sum));
    }
}
