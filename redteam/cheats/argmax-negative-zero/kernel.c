#include <stdint.h>
#include <string.h>

void argmax(const float *x, int64_t *index, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        int32_t top = INT32_MIN;
        int64_t at = 0;
        for (int64_t c = 0; c < cols; c++) {
            int32_t key;
            memcpy(&key, x + r * cols + c, 4);
            key ^= key < 0 ? INT32_MAX : 0;
            if (key > top) top = key, at = c;
        }
        index[r] = at;
    }
}
