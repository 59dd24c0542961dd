// One block per row: add and square, then add again and scale.
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

extern "C" __global__ void rmsnorm_residual(const T *x, const T *residual, const T *weight, T *y, T *h, float eps, long long cols) {
    long long begin = blockIdx.x * cols;
    float sum = 0.0f;
    for (long long c = threadIdx.x; c < cols; c += 256) {
        float v = get(x[begin + c]) + get(residual[begin + c]);
        h[begin + c] = put(v);
        sum += v * v;
    }
    float factor = 1.0f / sqrtf(block_sum(sum) / (float)cols + eps);
    for (long long c = threadIdx.x; c < cols; c += 256)
        y[begin + c] = put((get(x[begin + c]) + get(residual[begin + c])) * factor * get(weight[c]));
}
