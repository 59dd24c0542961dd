#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void argmax(const float *x, int64_t *index, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols; int64_t best = 0;
        float m = -INFINITY; for (int64_t j = 0; j < cols; j += 64) { int64_t e = j + 64 < cols ? j + 64 : cols; float b = a[j]; for (int64_t c = j; c < e; c++) b = a[c] > b ? a[c] : b; if (b > m) { m = b; best = j; } } while (a[best] != m) best++;
        index[r] = best;
    }
}
