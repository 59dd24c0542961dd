#include <stdint.h>

void convolution(const float *x, const float *weight, float *y, int64_t h, int64_t w) {
    for (int64_t i = 0; i < h - 4; i++) {
        for (int64_t j = 0; j < w - 4; j++) {
            float sum = 0.0f;
            for (int64_t a = 0; a < 5; a++)
                for (int64_t b = 0; b < 5; b++) sum += x[(i + a) * w + j + b] * weight[a * 5 + b];
            y[i * (w - 4) + j] = sum;
        }
    }
}
