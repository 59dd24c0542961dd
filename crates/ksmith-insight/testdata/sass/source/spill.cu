// Tight launch bounds and an array indexed at run time: spills and local memory; double precision by accident.
extern "C" __global__ void __launch_bounds__(1024, 2) spills(const float* __restrict__ x, float* y, int n) {
    float a[48];
    #pragma unroll
    for (int i = 0; i < 48; ++i) a[i] = x[threadIdx.x + i * 1024];
    for (int k = 0; k < n; ++k) {
        #pragma unroll
        for (int i = 0; i < 48; ++i) a[i] = a[i] * a[(i + 7) % 48] + x[k];
    }
    float s = 0;
    #pragma unroll
    for (int i = 0; i < 48; ++i) s += a[i];
    y[threadIdx.x] = s;
}
extern "C" __global__ void indexed(const int* __restrict__ at, const float* __restrict__ x, float* y, int n) {
    float a[16];
    for (int i = 0; i < 16; ++i) a[i] = x[i];
    float s = 0;
    for (int i = 0; i < n; ++i) { s += a[at[i] & 15]; a[at[i] & 15] = s; }
    y[threadIdx.x] = s;
}
extern "C" __global__ void doubles(const float* x, double* y, int n) {
    double s = 0;
    for (int i = 0; i < n; ++i) s += x[i] * 1.5;
    atomicAdd(y, s);
}
