/* Rotates the halves of each head by position * theta^(-2 i / dim), in float64. See README.md for `y_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *x, const int64_t *position, double *y, double *y_scale, double theta, int64_t tokens,
               int64_t heads, int64_t dim) {
    int64_t half = dim / 2;
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)position[t] * pow(theta, -2.0 * (double)i / (double)dim);
            double c = cos(angle), s = sin(angle);
            for (int64_t h = 0; h < heads; h++) {
                int64_t at = (t * heads + h) * dim + i;
                double low = x[at], high = x[at + half];
                y[at] = low * c - high * s;
                y[at + half] = high * c + low * s;
                /* An error e of the angle moves the rotated pair by e times its length. */
                double length = (fabs(low) + fabs(high)) * 6.0 * angle;
                y_scale[at] = 2.0 * (fabs(low * c) + fabs(high * s)) + length;
                y_scale[at + half] = 2.0 * (fabs(high * c) + fabs(low * s)) + length;
            }
        }
    }
}
