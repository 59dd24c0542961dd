extern "C" __global__ void scale_add(const float *x, const float *y, float *z, float a, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
