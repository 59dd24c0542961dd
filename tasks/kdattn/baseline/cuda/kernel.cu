// One block per head and token after token: thread j owns column j of the state, which lies in shared memory.
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

extern "C" __global__ void kdattn(const T *q, const T *k, const T *v, const float *g, const float *beta, const float *h0, T *o, float *ht, long long tokens, long long dk, long long dv) {
    extern __shared__ float state[];
    __shared__ float query[128], key[128], decay[128];
    long long head = blockIdx.x, j = threadIdx.x;
    if (j < dv)
        for (long long i = 0; i < dk; i++) state[i * 128 + j] = h0[(head * dk + i) * dv + j];
    for (long long t = 0; t < tokens; t++) {
        long long token = head * tokens + t;
        __syncthreads();
        if (j < dk) {
            query[j] = get(q[token * dk + j]);
            key[j] = get(k[token * dk + j]);
            decay[j] = expf(g[token * dk + j]);
        }
        __syncthreads();
        float qq = 0.0f, kk = 0.0f;
        for (long long i = 0; i < dk; i++) {
            qq += query[i] * query[i];
            kk += key[i] * key[i];
        }
        qq = 1.0f / sqrtf(qq + 1e-6f) / sqrtf((float)dk);
        kk = 1.0f / sqrtf(kk + 1e-6f);
        if (j < dv) {
            float seen = 0.0f, read = 0.0f;
            for (long long i = 0; i < dk; i++) {
                state[i * 128 + j] *= decay[i];
                seen += state[i * 128 + j] * key[i] * kk;
            }
            float delta = beta[token] * (get(v[token * dv + j]) - seen);
            for (long long i = 0; i < dk; i++) {
                state[i * 128 + j] += key[i] * kk * delta;
                read += state[i * 128 + j] * query[i] * qq;
            }
            o[token * dv + j] = put(read);
        }
    }
    if (j < dv)
        for (long long i = 0; i < dk; i++) ht[(head * dk + i) * dv + j] = state[i * 128 + j];
}
