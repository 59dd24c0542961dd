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

void cross_entropy(const float *logits, const int64_t *target, float *loss, int64_t rows, int64_t vocab) {
    for (int64_t r = 0; r < rows; r++) {
        float top;
        double sum = above(logits + r * vocab, vocab, &top);
        loss[r] = (float)((double)top - logits[r * vocab + target[r]] + log(sum));
    }
}
