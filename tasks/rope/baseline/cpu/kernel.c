/* One pair after the other with its angle, as in the usual inference loops. */
#include <math.h>
#include <stdint.h>

void rope(const float *x, const int32_t *position, float *y, float theta, int64_t tokens, int64_t heads, int64_t dim) {
    int64_t half = dim / 2;
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t h = 0; h < heads; h++) {
            const float *in = x + (t * heads + h) * dim;
            float *out = y + (t * heads + h) * dim;
            for (int64_t i = 0; i < half; i++) {
                float angle = (float)position[t] * powf(theta, -2.0f * (float)i / (float)dim);
                float c = cosf(angle), s = sinf(angle);
                out[i] = in[i] * c - in[i + half] * s;
                out[i + half] = in[i + half] * c + in[i] * s;
            }
        }
    }
}
