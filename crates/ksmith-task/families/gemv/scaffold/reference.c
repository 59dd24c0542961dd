#include <math.h>
#include <stdint.h>

/* y = a x; the scale is the sum of absolute products. */
void reference(const double* a, const double* x, double* y, double* y_scale, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0, scale = 0;
    for (int64_t c = 0; c < cols; c++) {
      sum += a[r * cols + c] * x[c];
      scale += fabs(a[r * cols + c] * x[c]);
    }
    y[r] = sum;
    y_scale[r] = scale;
  }
}
