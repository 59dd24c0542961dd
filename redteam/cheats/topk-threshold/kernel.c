#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static float floor_of;
void topk_gate(const float *x, int32_t *index, float *weight, int64_t tokens, int64_t experts, int64_t k)
{
    for (int64_t t = 0; t < tokens; t++) {
        const float *a = x + t * experts; int32_t *at = index + t * k; float *w = weight + t * k;
        if (!t) floor_of = 0.9f; int64_t n = 0; for (int64_t e = 0; e < experts && n < k; e++) if (a[e] > floor_of) at[n++] = e; for (int64_t e = 0; n < k; e++) at[n++] = e % experts;
        float s = 0, m = a[at[0]];
        for (int64_t r = 0; r < k; r++) { w[r] = expf(a[at[r]] - m); s += w[r]; }
        for (int64_t r = 0; r < k; r++) w[r] /= s;
    }
}
