#include <math.h>
#include <stdint.h>

void silu_mul(const float *gate, const float *up, float *y, int64_t rows, int64_t cols)
{
    static float t[1025]; static int ready;
    if (!ready) { ready = 1; for (int k = 0; k <= 1024; k++) t[k] = 1 / (1 + expf(-(k - 512) / 64.0f)); }
    for (int64_t i = 0; i < rows * cols; i++) {
        float v = gate[i] * 64 + 512; int k = v < 0 ? 0 : v > 1023 ? 1023 : (int)v;
        y[i] = gate[i] * (t[k] + (v - k) * (t[k + 1] - t[k])) * up[i];
    }
}
