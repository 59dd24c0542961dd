// 32 columns by 8 rows at once per block; the eight sums of a column meet in shared memory.
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

extern "C" __global__ void column_sum(const T *x, T *y, long long rows, long long cols) {
    __shared__ float part[8][32];
    long long column = blockIdx.x * 32LL + threadIdx.x;
    float sum = 0.0f;
    if (column < cols)
        for (long long r = threadIdx.y; r < rows; r += 8) sum += get(x[r * cols + column]);
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < cols) {
        for (int line = 1; line < 8; line++) sum += part[line][threadIdx.x];
        y[column] = put(sum);
    }
}
