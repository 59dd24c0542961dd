#include <math.h>
#include <stdint.h>
#include <pthread.h>

struct part { const float *x; float *y; int64_t rows, cols, from, to; double *sums; const float *tops; };

static void *spread(void *p)
{
    struct part *h = p;
    for (int64_t i = 0; i < h->rows; i++) {
        double s = 0;
        for (int64_t j = h->from; j < h->to; j++) {
            float e = expf(h->x[i * h->cols + j] - h->tops[i]);
            h->y[i * h->cols + j] = e;
            s += e;
        }
        h->sums[i] = s;
    }
    return 0;
}

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    enum { BLOCK = 256 };
    for (int64_t at = 0; at < rows; at += BLOCK) {
        double sums[2][BLOCK];
        float tops[BLOCK];
        int64_t count = rows - at < BLOCK ? rows - at : BLOCK;
        const float *a = x + at * cols;
        float *b = y + at * cols;
        for (int64_t i = 0; i < count; i++) {
            float m = a[i * cols];
            for (int64_t j = 1; j < cols; j++) m = a[i * cols + j] > m ? a[i * cols + j] : m;
            tops[i] = m;
        }
        struct part low = {a, b, count, cols, 0, cols / 2, sums[0], tops}, high = {a, b, count, cols, cols / 2, cols, sums[1], tops};
        pthread_t other;
        int alone = pthread_create(&other, 0, spread, &high);
        spread(&low);
        if (alone) spread(&high);
        else pthread_join(other, 0);
        for (int64_t i = 0; i < count; i++) {
            double s = sums[0][i] + sums[1][i];
            for (int64_t j = 0; j < cols; j++) b[i * cols + j] /= s;
        }
    }
}
