// One thread for each element.
#include "reference.c"

extern "C" __global__ void each_element(const double *x, double *y, double *y_scale, long long rows, long long cols) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < rows * cols) reference(x + i, y + i, y_scale + i, 1, 1);
}
