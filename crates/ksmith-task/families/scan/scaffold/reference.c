#include <math.h>
#include <stdint.h>

/* y = running sum of x along each row; the scale is the running sum of absolute terms. */
void reference(const double* x, double* y, double* y_scale, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0, scale = 0;
    for (int64_t c = 0; c < cols; c++) {
      y[r * cols + c] = sum += x[r * cols + c];
      y_scale[r * cols + c] = scale += fabs(x[r * cols + c]);
    }
  }
}
