#include <math.h>
#include <stdint.h>

/* y = sum of x over rows; the scale is the sum of absolute terms. */
void reference(const double* x, double* y, double* y_scale, int64_t rows, int64_t cols) {
  for (int64_t c = 0; c < cols; c++) {
    double sum = 0, scale = 0;
    for (int64_t r = 0; r < rows; r++) {
      sum += x[r * cols + c];
      scale += fabs(x[r * cols + c]);
    }
    y[c] = sum;
    y_scale[c] = scale;
  }
}
