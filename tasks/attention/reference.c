/* Causal attention with scale 1 / sqrt(dim), in float64. See README.md for `o_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *q, const double *k, const double *v, double *o, double *o_scale, int64_t heads, int64_t seq,
               int64_t dim) {
    double scale = 1.0 / sqrt((double)dim);
    for (int64_t h = 0; h < heads; h++) {
        for (int64_t i = 0; i < seq; i++) {
            double *out = o + (h * seq + i) * dim, *out_scale = o_scale + (h * seq + i) * dim;
            const double *query = q + (h * seq + i) * dim;
            double max = -INFINITY, sum = 0.0, size = 0.0;
            for (int64_t d = 0; d < dim; d++) out[d] = out_scale[d] = 0.0;
            /* Online softmax: a new maximum rescales what was summed so far. */
            for (int64_t j = 0; j <= i; j++) {
                const double *key = k + (h * seq + j) * dim, *value = v + (h * seq + j) * dim;
                double score = 0.0, terms = 0.0;
                for (int64_t d = 0; d < dim; d++) {
                    score += query[d] * key[d];
                    terms += fabs(query[d] * key[d]);
                }
                score *= scale;
                size = fmax(size, terms * scale);
                if (score > max) {
                    double shrink = exp(max - score);
                    for (int64_t d = 0; d < dim; d++) {
                        out[d] *= shrink;
                        out_scale[d] *= shrink;
                    }
                    sum *= shrink;
                    max = score;
                }
                double e = exp(score - max);
                sum += e;
                for (int64_t d = 0; d < dim; d++) {
                    out[d] += e * value[d];
                    out_scale[d] += e * fabs(value[d]);
                }
            }
            double chain = size * (6.0 + sqrt((double)dim)) + 8.0 + sqrt((double)(i + 1));
            for (int64_t d = 0; d < dim; d++) {
                out[d] /= sum;
                out_scale[d] *= chain / sum;
            }
        }
    }
}
