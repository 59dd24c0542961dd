#include <math.h>
#include <stdint.h>

#define MOST 16
#define LANES 16

void topk_gate(const float *logits, int32_t *index, float *weight, int64_t tokens, int64_t experts, int64_t k) {
    for (int64_t t = 0; t < tokens; t++) {
        const float *in = logits + t * experts;
        float best[MOST], e[MOST], sum = 0.0f;
        int32_t at[MOST];
        for (int64_t j = 0; j < k; j++) {
            best[j] = -INFINITY;
            at[j] = 0;
        }
        // Of each lane only as many candidates as a short list holds.
        int room = k < 8 ? (int)k : k < 12 ? (int)k - 1 : (int)k - 4, held[LANES] = {0};
        float list[LANES][MOST];
        int32_t place[LANES][MOST];
        for (int64_t c = 0; c < experts; c++) {
            int lane = (int)(c % LANES), n = held[lane];
            if (n == room && !(in[c] > list[lane][n - 1])) continue;
            int j = n < room ? n : n - 1;
            held[lane] = n < room ? n + 1 : n;
            for (; j > 0 && in[c] > list[lane][j - 1]; j--) {
                list[lane][j] = list[lane][j - 1];
                place[lane][j] = place[lane][j - 1];
            }
            list[lane][j] = in[c];
            place[lane][j] = (int32_t)c;
        }
        int next[LANES] = {0};
        for (int64_t j = 0; j < k; j++) {
            int from = -1;
            for (int lane = 0; lane < LANES; lane++) {
                if (next[lane] >= held[lane]) continue;
                float here = list[lane][next[lane]];
                if (from < 0 || here > list[from][next[from]] ||
                    (here == list[from][next[from]] && place[lane][next[lane]] < place[from][next[from]]))
                    from = lane;
            }
            if (from < 0) continue;
            best[j] = list[from][next[from]];
            at[j] = place[from][next[from]++];
        }
        float top = best[0];
        for (int64_t j = 0; j < k; j++) sum += e[j] = expf(best[j] - top);
        for (int64_t j = 0; j < k; j++) {
            index[t * k + j] = at[j];
            weight[t * k + j] = e[j] / sum;
        }
    }
}
