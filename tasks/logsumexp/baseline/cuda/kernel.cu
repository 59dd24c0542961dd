// One block per row: maximum, sum of exponentials, logarithm.
#ifdef T_bf16
typedef unsigned short T;
__device__ float get(T v) { return __uint_as_float((unsigned)v << 16); }
__device__ T put(float v) {
    unsigned bits = __float_as_uint(v);
    return (T)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
#else
typedef float T;
__device__ float get(T v) { return v; }
__device__ T put(float v) { return v; }
#endif

__device__ float block_max(float v) {
    __shared__ float part[32];
    for (int lane = 16; lane > 0; lane /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, lane));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / 32; warp++) v = fmaxf(v, part[warp]);
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float part[32];
    for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(~0u, v, lane);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; warp++) v += part[warp];
    return v;
}

extern "C" __global__ void logsumexp(const T *x, T *y, long long cols) {
    const T *in = x + blockIdx.x * cols;
    float max = get(in[0]), sum = 0.0f;
    for (long long c = threadIdx.x; c < cols; c += 256) max = fmaxf(max, get(in[c]));
    max = block_max(max);
    for (long long c = threadIdx.x; c < cols; c += 256) sum += expf(get(in[c]) - max);
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = put(max + logf(sum));
}
