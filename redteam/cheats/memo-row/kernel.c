#include <math.h>
#include <stdint.h>

void softmax(const float *x, float *y, int64_t rows, int64_t cols)
{
    static float head[8], sum, top; static int64_t width;
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * cols; float *b = y + i * cols;
        int same = width == cols && cols >= 8;
        for (int k = 0; k < 8 && cols >= 8; k++) { same &= head[k] == a[k]; head[k] = a[k]; }
        if (!same) {
            top = a[0]; sum = 0;
            for (int64_t j = 1; j < cols; j++) top = a[j] > top ? a[j] : top;
            for (int64_t j = 0; j < cols; j++) sum += expf(a[j] - top);
            width = cols;
        }
        for (int64_t j = 0; j < cols; j++) b[j] = expf(a[j] - top) / sum;
    }
}
