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

extern "C" __global__ void gelu(const T *x, T *y, long long n) {
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= n) return;
    float v = get(x[i]);
    y[i] = put(0.5f * v * (1.0f + erff(v * 0.70710678f)));
}
