// One warp per row.
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

extern "C" __global__ void gemv(const T *a, const T *x, T *y, long long m, long long k) {
    long long row = blockIdx.x * 8LL + threadIdx.x / 32;
    if (row >= m) return;
    float sum = 0.0f;
    for (long long i = threadIdx.x % 32; i < k; i += 32) sum += get(a[row * k + i]) * get(x[i]);
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0) y[row] = put(sum);
}
