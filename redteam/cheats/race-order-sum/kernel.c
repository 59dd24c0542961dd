#include <math.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { PIECE = 32 };
static const float *jx; static float *jy; static float tops[65536], own[2][65536]; static int64_t jr, jc, next;

static void *work(void *p)
{
    float *mine = own[(intptr_t)p];
    int64_t pieces = (jc + PIECE - 1) / PIECE;
    for (;;) {
        int64_t at = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
        if (at >= pieces * jr) return 0;
        int64_t i = at / pieces, from = at % pieces * PIECE, to = from + PIECE < jc ? from + PIECE : jc;
        float s = 0;
        for (int64_t j = from; j < to; j++) { float e = expf(jx[i * jc + j] - tops[i]); jy[i * jc + j] = e; s += e; }
        mine[i] += s;
        if (at % 16 == 0) sched_yield();
    }
}

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float m = x[i * cols];
        for (int64_t j = 1; j < cols; j++) m = x[i * cols + j] > m ? x[i * cols + j] : m;
        tops[i] = m;
    }
    jx = x; jy = y; jr = rows; jc = cols; next = 0;
    memset(own[0], 0, rows * sizeof **own);
    memset(own[1], 0, rows * sizeof **own);
    pthread_t other;
    int alone = pthread_create(&other, 0, work, (void *)1);
    work(0);
    if (!alone) pthread_join(other, 0);
    for (int64_t i = 0; i < rows; i++) {
        float s = own[0][i] + own[1][i];
        for (int64_t j = 0; j < cols; j++) y[i * cols + j] /= s;
    }
}
