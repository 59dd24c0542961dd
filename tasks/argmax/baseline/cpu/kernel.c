/* One pass; a strict comparison keeps the first of equal elements. */
#include <stdint.h>

void argmax(const float *x, int64_t *index, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float best = in[0];
        int64_t at = 0;
        for (int64_t c = 1; c < cols; c++) {
            if (in[c] > best) {
                best = in[c];
                at = c;
            }
        }
        index[r] = at;
    }
}
