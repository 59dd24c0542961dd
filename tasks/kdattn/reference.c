/* Kimi Delta Attention, token by token in float64:
 *   q^ = q / |q| / sqrt(dk), k^ = k / |k| (norms as sqrt(sum of squares + 1e-6)),
 *   S = diag(exp(g)) S;  S = S + beta k^ (v - S^T k^)^T;  o = S^T q^.
 * The scales follow the error of each state column from token to token: see README.md. */
#include <math.h>
#include <stdint.h>

void reference(const double *q, const double *k, const double *v, const double *g, const double *beta, const double *h0,
               double *o, double *o_scale, double *ht, double *ht_scale, int64_t heads, int64_t tokens, int64_t dk,
               int64_t dv) {
    double chain = 6.0 + sqrt((double)dk);
    for (int64_t h = 0; h < heads; h++) {
        double *state = ht + h * dk * dv;
        for (int64_t i = 0; i < dk * dv; i++) state[i] = h0[h * dk * dv + i];
        /* The error bound of column j lives in the first row of the state's scale until the end. */
        double *error = ht_scale + h * dk * dv;
        for (int64_t j = 0; j < dv; j++) error[j] = 0.0;
        for (int64_t t = 0; t < tokens; t++) {
            const double *query = q + (h * tokens + t) * dk, *key = k + (h * tokens + t) * dk;
            const double *decay = g + (h * tokens + t) * dk, *value = v + (h * tokens + t) * dv;
            double gate = beta[h * tokens + t], qq = 1e-6, kk = 1e-6, slowest = 0.0, steepest = 0.0;
            /* Columns side by side: the contract has at most 128 of them. */
            double before[128], seen[128], after[128], read[128], delta[128];
            for (int64_t i = 0; i < dk; i++) {
                qq += query[i] * query[i];
                kk += key[i] * key[i];
                slowest = fmax(slowest, exp(decay[i]));
                steepest = fmax(steepest, fabs(decay[i]) * exp(decay[i]));
            }
            double q_factor = 1.0 / sqrt(qq) / sqrt((double)dk), k_factor = 1.0 / sqrt(kk);
            for (int64_t j = 0; j < dv; j++) before[j] = seen[j] = after[j] = read[j] = 0.0;
            for (int64_t i = 0; i < dk; i++) {
                double kept = exp(decay[i]);
                double *row = state + i * dv;
                for (int64_t j = 0; j < dv; j++) {
                    before[j] += row[j] * row[j];
                    row[j] *= kept;
                    seen[j] += row[j] * key[i] * k_factor;
                }
            }
            for (int64_t j = 0; j < dv; j++) delta[j] = gate * (value[j] - seen[j]);
            for (int64_t i = 0; i < dk; i++) {
                double *row = state + i * dv;
                for (int64_t j = 0; j < dv; j++) {
                    row[j] += key[i] * k_factor * delta[j];
                    after[j] += row[j] * row[j];
                    read[j] += row[j] * query[i] * q_factor;
                }
            }
            for (int64_t j = 0; j < dv; j++) {
                o[(h * tokens + t) * dv + j] = read[j];
                double size = sqrt(before[j]) * slowest + gate * fabs(value[j]) + sqrt(after[j]);
                error[j] = hypot(slowest * error[j], chain * size + steepest * sqrt(before[j]));
                o_scale[(h * tokens + t) * dv + j] = (error[j] + chain * sqrt(after[j])) / sqrt((double)dk);
            }
        }
        for (int64_t i = dk - 1; i >= 0; i--)
            for (int64_t j = 0; j < dv; j++) error[i * dv + j] = error[j];
    }
}
