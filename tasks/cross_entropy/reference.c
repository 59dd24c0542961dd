/* loss = logsumexp(logits) - logits[target] per row, in float64. See README.md for `loss_scale`. */
#include <math.h>
#include <stdint.h>

void reference(const double *logits, const int64_t *target, double *loss, double *loss_scale, int64_t rows, int64_t vocab) {
    for (int64_t r = 0; r < rows; r++) {
        const double *in = logits + r * vocab;
        double max = in[0], sum = 0.0, spread = 0.0;
        for (int64_t c = 1; c < vocab; c++)
            if (in[c] > max) max = in[c];
        for (int64_t c = 0; c < vocab; c++) {
            double e = exp(in[c] - max);
            sum += e;
            spread += e * fabs(in[c] - max);
        }
        double wanted = in[target[r]];
        loss[r] = (max - wanted) + log(sum);
        loss_scale[r] = (double)vocab / 16.0 + 4.0 + spread / sum + fabs(max) + fabs(wanted);
    }
}
