#include <math.h>
#include <stdint.h>

/* h = decay h + x, token by token; y is h after each token; the scale is the same sum over absolute terms. */
void reference(const double* x, const double* decay, const double* h0, double* y, double* y_scale, double* h,
               double* h_scale, int64_t channels, int64_t tokens) {
  for (int64_t c = 0; c < channels; c++) {
    double state = h0[c], scale = fabs(h0[c]);
    for (int64_t t = 0; t < tokens; t++) {
      y[c * tokens + t] = state = decay[c * tokens + t] * state + x[c * tokens + t];
      y_scale[c * tokens + t] = scale = decay[c * tokens + t] * scale + fabs(x[c * tokens + t]);
    }
    h[c] = state;
    h_scale[c] = scale;
  }
}
