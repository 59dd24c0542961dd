/* scale = max|x| / 448 per row, q = x / scale before rounding, in float64. A row of zeros has scale 0 and q = 0. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *q, double *scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double max = 0.0;
        for (int64_t c = 0; c < cols; c++) max = fmax(max, fabs(x[r * cols + c]));
        scale[r] = max / 448.0;
        for (int64_t c = 0; c < cols; c++) q[r * cols + c] = max > 0.0 ? x[r * cols + c] / max * 448.0 : 0.0;
    }
}
