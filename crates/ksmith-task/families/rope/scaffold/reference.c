#include <math.h>
#include <stdint.h>

/* Pairs (i, i + half) of each head are rotated by the token's angle i; the scale is the sum of absolute terms. */
void reference(const double* x, const double* angle, double* y, double* y_scale, int64_t tokens, int64_t heads,
               int64_t half) {
  for (int64_t t = 0; t < tokens; t++) {
    for (int64_t h = 0; h < heads; h++) {
      for (int64_t i = 0; i < half; i++) {
        int64_t at = (t * heads + h) * 2 * half + i;
        double a = x[at], b = x[at + half], c = cos(angle[t * half + i]), s = sin(angle[t * half + i]);
        y[at] = a * c - b * s;
        y[at + half] = a * s + b * c;
        y_scale[at] = y_scale[at + half] = fabs(a) + fabs(b);
      }
    }
  }
}
