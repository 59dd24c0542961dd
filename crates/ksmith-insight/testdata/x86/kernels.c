#include <math.h>
#include <stdint.h>
void scale(const float *restrict x, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i] + 1.0f;
}
float expf(float);
float sum(const float *x, int64_t n) {
    float s = 0.0f;
    for (int64_t i = 0; i < n; ++i) s += x[i];
    return s;
}
void exps(const float *restrict x, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = expf(x[i]);
}
int64_t first(const float *x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) if (x[i] < 0.0f) return i;
    return n;
}
void divide(const float *restrict x, float *restrict y, float d, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = sqrtf(x[i]) / (x[i] + d);
}
void gather(const float *restrict x, const int32_t *restrict at, float *restrict y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[at[i]];
}
float dot(const float *restrict x, const float *restrict y, int64_t n) {
    float s = 0.0f;
    for (int64_t i = 0; i < n; ++i) s += x[i] * y[i];
    return s;
}
void rows(const float *restrict x, float *restrict y, int64_t r, int64_t c) {
    for (int64_t i = 0; i < r; ++i) {
        float m = x[i * c];
        for (int64_t j = 0; j < c; ++j) m = x[i * c + j] > m ? x[i * c + j] : m;
        for (int64_t j = 0; j < c; ++j) y[i * c + j] = x[i * c + j] - m;
    }
}
float dot4(const float *restrict x, const float *restrict y, int64_t n) {
    float a = 0, b = 0, c = 0, d = 0;
    for (int64_t i = 0; i + 4 <= n; i += 4) { a += x[i] * y[i]; b += x[i+1] * y[i+1]; c += x[i+2] * y[i+2]; d += x[i+3] * y[i+3]; }
    return (a + b) + (c + d);
}
