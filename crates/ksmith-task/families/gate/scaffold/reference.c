#include <math.h>
#include <stdint.h>

/* The k largest logits of each token, largest first, the lower index first among equals; weight = softmax over them. */
void reference(const double* logits, int64_t* chosen, double* weight, int64_t tokens, int64_t experts, int64_t k) {
  for (int64_t t = 0; t < tokens; t++) {
    const double* row = logits + t * experts;
    double sum = 0;
    for (int64_t i = 0; i < k; i++) {
      int64_t best = -1;
      for (int64_t e = 0; e < experts; e++) {
        int taken = 0;
        for (int64_t j = 0; j < i; j++) taken |= chosen[t * k + j] == e;
        if (!taken && (best < 0 || row[e] > row[best])) best = e;
      }
      chosen[t * k + i] = best;
      sum += weight[t * k + i] = exp(row[best] - row[chosen[t * k]]);
    }
    for (int64_t i = 0; i < k; i++) weight[t * k + i] /= sum;
  }
}
