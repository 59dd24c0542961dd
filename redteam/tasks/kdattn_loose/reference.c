/* Kimi Delta Attention, token by token in float64; the state is not an output. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void reference(const double *q, const double *k, const double *v, const double *g, const double *beta, const double *h0,
               double *o, int64_t heads, int64_t tokens, int64_t dk, int64_t dv) {
    double *state = malloc(sizeof(double) * dk * dv);
    for (int64_t h = 0; h < heads; h++) {
        for (int64_t i = 0; i < dk * dv; i++) state[i] = h0[h * dk * dv + i];
        for (int64_t t = 0; t < tokens; t++) {
            const double *query = q + (h * tokens + t) * dk, *key = k + (h * tokens + t) * dk;
            const double *decay = g + (h * tokens + t) * dk, *value = v + (h * tokens + t) * dv;
            double qq = 1e-6, kk = 1e-6;
            for (int64_t i = 0; i < dk; i++) {
                qq += query[i] * query[i];
                kk += key[i] * key[i];
            }
            double q_factor = 1.0 / sqrt(qq) / sqrt((double)dk), k_factor = 1.0 / sqrt(kk);
            for (int64_t j = 0; j < dv; j++) {
                double seen = 0.0, read = 0.0;
                for (int64_t i = 0; i < dk; i++) {
                    state[i * dv + j] *= exp(decay[i]);
                    seen += state[i * dv + j] * key[i] * k_factor;
                }
                double delta = beta[h * tokens + t] * (value[j] - seen);
                for (int64_t i = 0; i < dk; i++) {
                    state[i * dv + j] += key[i] * k_factor * delta;
                    read += state[i * dv + j] * query[i] * q_factor;
                }
                o[(h * tokens + t) * dv + j] = read;
            }
        }
    }
    free(state);
}
