// One thread per element.
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

extern "C" __global__ void silu_mul(const T *gate, const T *up, T *y, long long n) {
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= n) return;
    float g = get(gate[i]);
    y[i] = put(g / (1.0f + expf(-g)) * get(up[i]));
}
