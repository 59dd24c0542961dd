#include <math.h>
#include <stdint.h>

void reference(const double *p, const double *q, double *out, int64_t m, int64_t n, int64_t d) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (int64_t k = 0; k < d; k++) sum += (p[i * d + k] - q[k * n + j]) * (p[i * d + k] - q[k * n + j]);
            out[i * n + j] = sqrt(sum);
        }
}
