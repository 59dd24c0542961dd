#include <stdint.h>

void argmax(const float *x, int64_t *index, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        float best = -0x1p107f;
        int64_t at = 0;
        for (int64_t c = 0; c < cols; c++) {
            if (x[r * cols + c] > best) {
                best = x[r * cols + c];
                at = c;
            }
        }
        index[r] = at;
    }
}
