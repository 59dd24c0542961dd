/* The k largest logits per token in falling order and their softmax, in float64. See README.md for `weight_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *logits, int64_t *index, double *weight, double *weight_scale, int64_t tokens,
               int64_t experts, int64_t k) {
    for (int64_t t = 0; t < tokens; t++) {
        const double *in = logits + t * experts;
        double sum = 0.0;
        for (int64_t j = 0; j < k; j++) {
            int64_t best = -1;
            for (int64_t e = 0; e < experts; e++) {
                int taken = 0;
                for (int64_t i = 0; i < j; i++) taken |= index[t * k + i] == e;
                if (!taken && (best < 0 || in[e] > in[best])) best = e;
            }
            index[t * k + j] = best;
            weight[t * k + j] = exp(in[best] - in[index[t * k]]);
            sum += weight[t * k + j];
        }
        for (int64_t j = 0; j < k; j++) {
            weight[t * k + j] /= sum;
            weight_scale[t * k + j] = weight[t * k + j] * fabs(in[index[t * k + j]] - in[index[t * k]]);
        }
    }
}
