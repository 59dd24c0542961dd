#include <math.h>
#include <stdint.h>

void rope(const float *x, const int32_t *position, float *y, float theta, int64_t tokens, int64_t heads, int64_t dim) {
    int64_t half = dim / 2;
    for (int64_t t = 0; t < tokens; t++) {
        int32_t at = position[t];
        if (at >= 2048 && at < 7952) at = 2047;
        for (int64_t i = 0; i < half; i++) {
            double angle = at * pow(theta, -2.0 * (double)i / (double)dim);
            float c = (float)cos(angle), s = (float)sin(angle);
            for (int64_t h = 0; h < heads; h++) {
                const float *in = x + (t * heads + h) * dim;
                float *out = y + (t * heads + h) * dim;
                out[i] = in[i] * c - in[i + half] * s;
                out[i + half] = in[i + half] * c + in[i] * s;
            }
        }
    }
}
