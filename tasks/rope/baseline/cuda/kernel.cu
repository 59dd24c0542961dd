// One thread per pair, with its angle.
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

extern "C" __global__ void rope(const T *x, const int *position, T *y, float theta, long long tokens, long long heads, long long dim) {
    long long half = dim / 2, pair = blockIdx.x * 256LL + threadIdx.x;
    if (pair >= tokens * heads * half) return;
    long long i = pair % half, head = pair / half, t = head / heads;
    float angle = (float)position[t] * powf(theta, -2.0f * (float)i / (float)dim);
    float c = cosf(angle), s = sinf(angle);
    const T *in = x + head * dim;
    T *out = y + head * dim;
    float low = get(in[i]), high = get(in[i + half]);
    out[i] = put(low * c - high * s);
    out[i + half] = put(high * c + low * s);
}
