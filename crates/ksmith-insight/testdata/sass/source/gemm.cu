// Tensor cores: mma.sync fed by cp.async and ldmatrix; and the same product without either.
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void mma_async(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b, float* c, int k) {
    __shared__ __align__(128) __nv_bfloat16 sa[2][16 * 32], sb[2][32 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    int t = threadIdx.x;
    for (int k0 = 0; k0 < k; k0 += 32) {
        int s = (k0 / 32) & 1;
        unsigned da = __cvta_generic_to_shared(&sa[s][t * 16]);
        unsigned db = __cvta_generic_to_shared(&sb[s][t * 16]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(da), "l"(a + k0 + (long long)t * k));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(db), "l"(b + (long long)k0 * 16 + t * 16));
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        wmma::load_matrix_sync(fa, sa[s], 32);
        wmma::load_matrix_sync(fb, sb[s], 16);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);
}
extern "C" __global__ void cuda_cores(const float* __restrict__ a, const float* __restrict__ b, float* c, int n, int k) {
    __shared__ float sa[16][16], sb[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    float s = 0;
    for (int k0 = 0; k0 < k; k0 += 16) {
        sa[y][x] = a[(blockIdx.y * 16 + y) * k + k0 + x];
        sb[y][x] = b[(k0 + y) * n + blockIdx.x * 16 + x];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 16; ++i) s += sa[y][i] * sb[i][x];
        __syncthreads();
    }
    c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = s;
}
