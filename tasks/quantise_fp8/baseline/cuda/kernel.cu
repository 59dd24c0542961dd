// One block per row: maximum, then division and conversion.
#ifdef T_bf16
typedef unsigned short T;
__device__ float get(T v) { return __uint_as_float((unsigned)v << 16); }
#else
typedef float T;
__device__ float get(T v) { return v; }
#endif

__device__ float block_max(float v) {
    __shared__ float part[32];
    for (int lane = 16; lane > 0; lane /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, lane));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / 32; warp++) v = fmaxf(v, part[warp]);
    return v;
}

// To float8 of 4 exponent and 3 mantissa bits, nearest even, |v| <= 448.
__device__ unsigned char narrow(float v) {
    float size = fminf(fabsf(v), 448.0f);
    unsigned bits = __float_as_uint(size), sign = __float_as_uint(v) >> 24 & 0x80;
    if (size < 0.015625f) return (unsigned char)(sign | (unsigned)__float2int_rn(size * 512.0f));
    bits += 0x7ffff + ((bits >> 20) & 1);
    return (unsigned char)(sign | ((bits >> 20) - (120 << 3)));
}

extern "C" __global__ void quantise_fp8(const T *x, unsigned char *q, float *scale, long long cols) {
    const T *in = x + blockIdx.x * cols;
    float max = 0.0f;
    for (long long c = threadIdx.x; c < cols; c += 256) max = fmaxf(max, fabsf(get(in[c])));
    max = block_max(max);
    float step = max / 448.0f;
    if (threadIdx.x == 0) scale[blockIdx.x] = step;
    for (long long c = threadIdx.x; c < cols; c += 256)
        q[blockIdx.x * cols + c] = max > 0.0f ? narrow(get(in[c]) / step) : 0;
}
