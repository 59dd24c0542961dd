#include <math.h>
#include <stdint.h>

/* y = softmax(x) along each row. */
void reference(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; c++) largest = fmax(largest, x[r * cols + c]);
    for (int64_t c = 0; c < cols; c++) sum += exp(x[r * cols + c] - largest);
    for (int64_t c = 0; c < cols; c++) y[r * cols + c] = exp(x[r * cols + c] - largest) / sum;
  }
}
