/* y = gate * sigmoid(gate) * up in float64, with the exponent always <= 0. */
#include <math.h>
#include <stdint.h>

void reference(const double *gate, const double *up, double *y, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows * cols; i++) {
        double e = exp(-fabs(gate[i]));
        double sigmoid = gate[i] < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
        y[i] = gate[i] * sigmoid * up[i];
    }
}
