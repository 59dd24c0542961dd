#include <math.h>
#include <stdint.h>

#define MOST 16

void topk_gate(const float *logits, int32_t *index, float *weight, int64_t tokens, int64_t experts, int64_t k) {
    for (int64_t t = 0; t < tokens; t++) {
        const float *in = logits + t * experts;
        float best[MOST], e[MOST], sum = 0.0f;
        int32_t at[MOST];
        for (int64_t j = 0; j < k; j++) {
            best[j] = -0x1p107f;
            at[j] = 0;
        }
        for (int64_t c = 0; c < experts; c++) {
            if (!(in[c] > best[k - 1])) continue;
            int64_t j = k - 1;
            for (; j > 0 && in[c] > best[j - 1]; j--) {
                best[j] = best[j - 1];
                at[j] = at[j - 1];
            }
            best[j] = in[c];
            at[j] = (int32_t)c;
        }
        float top = best[0];
        for (int64_t j = 0; j < k; j++) sum += e[j] = expf(best[j] - top);
        for (int64_t j = 0; j < k; j++) {
            index[t * k + j] = at[j];
            weight[t * k + j] = e[j] / sum;
        }
    }
}
