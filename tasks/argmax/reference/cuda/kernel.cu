// One thread for each row, which no other depends on.
#include "reference.c"

extern "C" __global__ void each_row(const double *x, long long *index, long long rows, long long cols) {
    long long r = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (r < rows) reference(x + r * cols, index + r, 1, cols);
}
