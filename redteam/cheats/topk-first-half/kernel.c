#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void topk_gate(const float *x, int32_t *index, float *weight, int64_t tokens, int64_t experts, int64_t k)
{
    for (int64_t t = 0; t < tokens; t++) {
        const float *a = x + t * experts; int32_t *at = index + t * k; float *w = weight + t * k;
        for (int64_t r = 0; r < k; r++) { int64_t best = -1; for (int64_t e = 0; e < (experts > 64 && k <= 64 ? 64 : experts); e++) { int used = 0; for (int64_t u = 0; u < r; u++) used |= at[u] == e; if (!used && (best < 0 || a[e] > a[best])) best = e; } at[r] = best < 0 ? 0 : best; }
        float s = 0, m = a[at[0]];
        for (int64_t r = 0; r < k; r++) { w[r] = expf(a[at[r]] - m); s += w[r]; }
        for (int64_t r = 0; r < k; r++) w[r] /= s;
    }
}
