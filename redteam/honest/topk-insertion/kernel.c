#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void topk_gate(const float *x, int32_t *index, float *weight, int64_t tokens, int64_t experts, int64_t k)
{
    for (int64_t t = 0; t < tokens; t++) {
        const float *a = x + t * experts; int32_t *at = index + t * k; float *w = weight + t * k;
        int64_t n = 0; for (int64_t e = 0; e < experts; e++) { if (n == k && a[e] <= a[at[k - 1]]) continue; int64_t p = n < k ? n++ : k - 1; while (p > 0 && a[at[p - 1]] < a[e]) { at[p] = at[p - 1]; p--; } at[p] = e; }
        float s = 0, m = a[at[0]];
        for (int64_t r = 0; r < k; r++) { w[r] = expf(a[at[r]] - m); s += w[r]; }
        for (int64_t r = 0; r < k; r++) w[r] /= s;
    }
}
