/* Insertion into a short sorted list, then a softmax of the chosen logits. */
#include <math.h>
#include <stdint.h>

void topk_gate(const float *logits, int32_t *index, float *weight, int64_t tokens, int64_t experts, int64_t k) {
    for (int64_t t = 0; t < tokens; t++) {
        const float *in = logits + t * experts;
        int32_t *chosen = index + t * k;
        float *w = weight + t * k;
        int64_t count = 0;
        for (int64_t e = 0; e < experts; e++) {
            if (count == k && !(in[e] >= in[chosen[k - 1]])) continue;
            int64_t at = count < k ? count++ : k - 1;
            while (at > 0 && in[e] >= in[chosen[at - 1]]) {
                chosen[at] = chosen[at - 1];
                at--;
            }
            chosen[at] = (int32_t)e;
        }
        float sum = 0.0f;
        for (int64_t j = 0; j < k; j++) {
            w[j] = expf(in[chosen[j]] - in[chosen[0]]);
            sum += w[j];
        }
        for (int64_t j = 0; j < k; j++) w[j] /= sum;
    }
}
