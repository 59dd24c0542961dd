// One thread for each token, which no other depends on.
#include "reference.c"

extern "C" __global__ void each_token(const double *x, const long long *position, double *y, double *y_scale,
        double theta, long long tokens, long long heads, long long dim) {
    long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (t < tokens) reference(x + t * heads * dim, position + t, y + t * heads * dim, y_scale + t * heads * dim,
                              theta, 1, heads, dim);
}
