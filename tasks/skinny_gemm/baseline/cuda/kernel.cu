// One warp per row of the weights and token.
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

extern "C" __global__ void skinny_gemm(const T *x, const T *w, T *y, long long n, long long k) {
    long long row = blockIdx.x * 8LL + threadIdx.x / 32, token = blockIdx.y;
    if (row >= n) return;
    float sum = 0.0f;
    for (long long i = threadIdx.x % 32; i < k; i += 32) sum += get(w[row * k + i]) * get(x[token * k + i]);
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0) y[token * n + row] = put(sum);
}
