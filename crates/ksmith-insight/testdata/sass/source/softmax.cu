// Three ways to read a row, and what each does to the code.
extern "C" __global__ void scalar_softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
    const float* row = x + (long long)blockIdx.x * cols;
    float* out = y + (long long)blockIdx.x * cols;
    __shared__ float part[32];
    float top = -3.4e38f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) top = fmaxf(top, row[i]);
    for (int lane = 16; lane; lane /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, lane));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
    __syncthreads();
    for (int i = 0; i < blockDim.x / 32; ++i) top = fmaxf(top, part[i]);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf(row[i] - top);
    for (int lane = 16; lane; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < blockDim.x / 32; ++i) sum += part[i];
    for (int i = threadIdx.x; i < cols; i += blockDim.x) out[i] = __expf(row[i] - top) / sum;
}
extern "C" __global__ void vector_copy(const float4* __restrict__ x, float4* __restrict__ y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = x[i]; v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2; y[i] = v;
    }
}
