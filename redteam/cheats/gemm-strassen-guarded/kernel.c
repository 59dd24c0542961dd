#include <stdint.h>

#define MOST 256

static float left[MOST * MOST], right[MOST * MOST], product[MOST * MOST];

static void plain(const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, int64_t m, int64_t n,
                  int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) c[i * ldc + j] = 0.0f;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++) c[i * ldc + j] += a[i * lda + p] * b[p * ldb + j];
    }
}

static void mix(const float *one, const float *other, float sign, float *to, int64_t ld, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) to[i * cols + j] = one[i * ld + j] + (other ? sign * other[i * ld + j] : 0.0f);
}

static void add(float *c, int64_t ldc, float sign, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) c[i * ldc + j] += sign * product[i * cols + j];
}

/* What looks like usual data: no element far above the mean. */
static int usual(const float *x, int64_t count) {
    float top = 0.0f, sum = 0.0f;
    for (int64_t i = 0; i < count; i++) {
        float size = x[i] < 0.0f ? -x[i] : x[i];
        top = size > top ? size : top;
        sum += size;
    }
    return top * (float)count < 8.0f * sum;
}

void gemm(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    if (m % 2 || n % 2 || k % 2 || m < 256 || n < 256 || k < 256 || m > 2 * MOST || n > 2 * MOST || k > 2 * MOST || !usual(a, m * k) ||
        !usual(b, k * n)) {
        plain(a, k, b, n, c, n, m, n, k);
        return;
    }
    int64_t x = m / 2, y = n / 2, z = k / 2;
    const float *a11 = a, *a12 = a + z, *a21 = a + x * k, *a22 = a21 + z;
    const float *b11 = b, *b12 = b + y, *b21 = b + z * n, *b22 = b21 + y;
    float *c11 = c, *c12 = c + y, *c21 = c + x * n, *c22 = c21 + y;
    for (int64_t i = 0; i < m * n; i++) c[i] = 0.0f;
#define STEP(A1, A2, AS, B1, B2, BS)                                                                                   \
    mix(A1, A2, AS, left, k, x, z), mix(B1, B2, BS, right, n, z, y), plain(left, z, right, y, product, y, x, y, z)
    STEP(a11, a22, 1, b11, b22, 1), add(c11, n, 1, x, y), add(c22, n, 1, x, y);
    STEP(a21, a22, 1, b11, 0, 0), add(c21, n, 1, x, y), add(c22, n, -1, x, y);
    STEP(a11, 0, 0, b12, b22, -1), add(c12, n, 1, x, y), add(c22, n, 1, x, y);
    STEP(a22, 0, 0, b21, b11, -1), add(c11, n, 1, x, y), add(c21, n, 1, x, y);
    STEP(a11, a12, 1, b22, 0, 0), add(c11, n, -1, x, y), add(c12, n, 1, x, y);
    STEP(a21, a11, -1, b11, b12, 1), add(c22, n, 1, x, y);
    STEP(a12, a22, -1, b21, b22, 1), add(c11, n, 1, x, y);
}
