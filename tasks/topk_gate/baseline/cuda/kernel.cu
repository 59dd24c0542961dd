// One thread per token: insertion into a short sorted list, then a softmax of the chosen logits.
#ifdef T_bf16
typedef unsigned short T;
__device__ float get(T v) { return __uint_as_float((unsigned)v << 16); }
#else
typedef float T;
__device__ float get(T v) { return v; }
#endif

extern "C" __global__ void topk_gate(const T *logits, int *index, float *weight, long long tokens, long long experts, long long k) {
    long long t = blockIdx.x * 128LL + threadIdx.x;
    if (t >= tokens) return;
    const T *in = logits + t * experts;
    float best[16];
    int at[16];
    int count = 0;
    for (int e = 0; e < experts; e++) {
        float v = get(in[e]);
        if (count == k && !(v > best[k - 1])) continue;
        int place = count < k ? count++ : (int)k - 1;
        for (; place > 0 && v > best[place - 1]; place--) {
            best[place] = best[place - 1];
            at[place] = at[place - 1];
        }
        best[place] = v;
        at[place] = e;
    }
    float sum = 0.0f;
    for (int j = 0; j < k; j++) sum += expf(best[j] - best[0]);
    for (int j = 0; j < k; j++) {
        index[t * k + j] = at[j];
        weight[t * k + j] = expf(best[j] - best[0]) / sum;
    }
}
