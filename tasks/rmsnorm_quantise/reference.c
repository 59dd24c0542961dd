/* z = x / sqrt(mean(x^2) + eps) * weight; scale = max|z| / 448 per row, q = z / scale before rounding, in float64.
   The tolerance of q counts in steps of its format: 3 bits of mantissa, and 2^-9 below the smallest normal number. */
#include <math.h>
#include <stdint.h>

static double step(double q) {
    int exponent;
    frexp(q, &exponent);
    return fabs(q) < 0x1p-6 ? 0x1p-9 : ldexp(1.0, exponent - 4);
}

void reference(const double *x, const double *weight, double *q, double *q_scale, double *scale, double *scale_scale, double eps,
               int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0.0, max = 0.0;
        for (int64_t c = 0; c < cols; c++) sum += x[r * cols + c] * x[r * cols + c];
        double factor = 1.0 / sqrt(sum / (double)cols + eps);
        for (int64_t c = 0; c < cols; c++) {
            q[r * cols + c] = x[r * cols + c] * factor * weight[c];
            max = fmax(max, fabs(q[r * cols + c]));
        }
        scale[r] = max / 448.0;
        scale_scale[r] = scale[r] * ((double)cols / 16.0);
        for (int64_t c = 0; c < cols; c++) {
            q[r * cols + c] = max > 0.0 ? q[r * cols + c] / max * 448.0 : 0.0;
            q_scale[r * cols + c] = step(q[r * cols + c]);
        }
    }
}
