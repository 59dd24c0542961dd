#include <stdint.h>

void reference(const double *x, double *y, int64_t h, int64_t w) {
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++) {
            int64_t at = i * w + j;
            int edge = i == 0 || j == 0 || i == h - 1 || j == w - 1;
            y[at] = edge ? x[at] : 0.2 * (x[at] + x[at - 1] + x[at + 1] + x[at - w] + x[at + w]);
        }
}
