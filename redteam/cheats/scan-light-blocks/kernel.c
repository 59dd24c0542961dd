#include <math.h>
#include <stdint.h>

#define BLOCK 16

void scan(const float *x, float *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *out = y + r * cols;
        double sum = 0.0;
        for (int64_t c = 0; c < cols; c += BLOCK) {
            int64_t end = c + BLOCK < cols ? c + BLOCK : cols;
            float least = (float)(fabs(sum) * 0x1p-25);
            int light = c > 0;
            for (int64_t i = c; i < end && light; i++) light = fabsf(in[i]) < least;
            for (int64_t i = c; i < end; i++) {
                if (!light) sum += in[i];
                out[i] = (float)sum;
            }
        }
    }
}
