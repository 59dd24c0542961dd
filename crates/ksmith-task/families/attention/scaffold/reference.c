#include <math.h>
#include <stdint.h>

/* Causal attention; the scale is the weighted sum of |v|. */
void reference(const double* q, const double* k, const double* v, double* o, double* o_scale, int64_t heads,
               int64_t tokens, int64_t d) {
  for (int64_t at = 0; at < heads * tokens; at++) {
    int64_t h = at / tokens, t = at % tokens;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < d; i++) o[at * d + i] = o_scale[at * d + i] = 0;
    for (int pass = 0; pass < 2; pass++) {
      for (int64_t s = 0; s <= t; s++) {
        double score = 0;
        for (int64_t i = 0; i < d; i++) score += q[at * d + i] * k[(h * tokens + s) * d + i];
        score /= sqrt((double)d);
        if (pass == 0) {
          largest = fmax(largest, score);
          continue;
        }
        double weight = exp(score - largest);
        sum += weight;
        for (int64_t i = 0; i < d; i++) {
          o[at * d + i] += weight * v[(h * tokens + s) * d + i];
          o_scale[at * d + i] += weight * fabs(v[(h * tokens + s) * d + i]);
        }
      }
    }
    for (int64_t i = 0; i < d; i++) {
      o[at * d + i] /= sum;
      o_scale[at * d + i] /= sum;
    }
  }
}
