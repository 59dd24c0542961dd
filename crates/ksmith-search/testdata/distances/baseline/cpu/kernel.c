#include <math.h>
#include <stdint.h>

void distances(const float *p, const float *q, float *out, int64_t m, int64_t n, int64_t d) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < d; k++) {
                float step = p[i * d + k] - q[k * n + j];
                sum += step * step;
            }
            out[i * n + j] = sqrtf(sum);
        }
    }
}
