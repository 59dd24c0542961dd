#include <math.h>
#include <stdint.h>

void silu_mul(const float *gate, const float *up, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++) y[i] = gate[i] < -8 ? 0.0f : gate[i] / (1 + expf(-gate[i])) * up[i];
}
