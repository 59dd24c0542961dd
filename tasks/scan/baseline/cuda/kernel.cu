// One block per row: chunks of 256 columns are scanned in shared memory, the running sum goes on to the next.
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

extern "C" __global__ void scan(const T *x, T *y, long long cols) {
    __shared__ float held[256];
    const T *in = x + blockIdx.x * cols;
    T *out = y + blockIdx.x * cols;
    float carry = 0.0f;
    for (long long base = 0; base < cols; base += 256) {
        long long c = base + threadIdx.x;
        held[threadIdx.x] = c < cols ? get(in[c]) : 0.0f;
        for (int step = 1; step < 256; step *= 2) {
            __syncthreads();
            float left = threadIdx.x >= step ? held[threadIdx.x - step] : 0.0f;
            __syncthreads();
            held[threadIdx.x] += left;
        }
        __syncthreads();
        if (c < cols) out[c] = put(carry + held[threadIdx.x]);
        carry += held[255];
        __syncthreads();
    }
}
