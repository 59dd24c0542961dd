// One block per row; value and index travel through a tree in shared memory.
#ifdef T_bf16
typedef unsigned short T;
__device__ float get(T v) { return __uint_as_float((unsigned)v << 16); }
#else
typedef float T;
__device__ float get(T v) { return v; }
#endif

extern "C" __global__ void argmax(const T *x, long long *index, long long cols) {
    __shared__ float values[256];
    __shared__ long long places[256];
    const T *in = x + blockIdx.x * cols;
    float best = __int_as_float(0xff800000);
    long long at = cols;
    for (long long c = threadIdx.x; c < cols; c += 256) {
        if (get(in[c]) > best) {
            best = get(in[c]);
            at = c;
        }
    }
    values[threadIdx.x] = best;
    places[threadIdx.x] = at;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            float other = values[threadIdx.x + half];
            long long other_at = places[threadIdx.x + half];
            // Of equal values the first counts.
            if (other > values[threadIdx.x] || (other == values[threadIdx.x] && other_at < places[threadIdx.x])) {
                values[threadIdx.x] = other;
                places[threadIdx.x] = other_at;
            }
        }
    }
    if (threadIdx.x == 0) index[blockIdx.x] = places[0];
}
