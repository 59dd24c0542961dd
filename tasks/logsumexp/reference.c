/* y = max + log(sum exp(x - max)) per row, in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, double *y, double *y_scale, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const double *in = x + r * cols;
        double max = in[0], sum = 0.0, spread = 0.0;
        for (int64_t c = 1; c < cols; c++)
            if (in[c] > max) max = in[c];
        for (int64_t c = 0; c < cols; c++) {
            double e = exp(in[c] - max);
            sum += e;
            spread += e * fabs(in[c] - max);
        }
        y[r] = max + log(sum);
        y_scale[r] = (double)cols / 16.0 + 4.0 + spread / sum + fabs(max);
    }
}
