/* scale = max|x| / 448 per row, q = x / scale before rounding, in float64. A row of zeros has scale 0 and q = 0. The tolerance of q
   counts in steps of its format: 3 bits of mantissa, and 2^-9 below the smallest normal number. */
#include <math.h>
#include <stdint.h>

static double step(double q) {
    int exponent;
    frexp(q, &exponent);
    return fabs(q) < 0x1p-6 ? 0x1p-9 : ldexp(1.0, exponent - 4);
}

void reference(const double *x, double *q, double *q_scale, double *scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double max = 0.0;
        for (int64_t c = 0; c < cols; c++) max = fmax(max, fabs(x[r * cols + c]));
        scale[r] = max / 448.0;
        for (int64_t c = 0; c < cols; c++) {
            q[r * cols + c] = max > 0.0 ? x[r * cols + c] / max * 448.0 : 0.0;
            q_scale[r * cols + c] = step(q[r * cols + c]);
        }
    }
}
