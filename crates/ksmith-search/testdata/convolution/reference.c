#include <math.h>
#include <stdint.h>

void reference(const double *x, const double *weight, double *y, double *y_scale, int64_t h, int64_t w) {
    for (int64_t i = 0; i < h - 4; i++)
        for (int64_t j = 0; j < w - 4; j++) {
            double sum = 0.0, size = 0.0;
            for (int64_t a = 0; a < 5; a++)
                for (int64_t b = 0; b < 5; b++) {
                    double term = x[(i + a) * w + j + b] * weight[a * 5 + b];
                    sum += term;
                    size += fabs(term);
                }
            y[i * (w - 4) + j] = sum;
            y_scale[i * (w - 4) + j] = size;
        }
}
