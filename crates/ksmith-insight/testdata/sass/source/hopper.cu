// sm_90a only: a bulk tensor copy under an mbarrier, and wgmma whose accumulators are touched too early.
#include <cuda.h>
#include <cstdint>
extern "C" __global__ void __launch_bounds__(128) tma_wgmma(const __grid_constant__ CUtensorMap map, float* out, int steps) {
    __shared__ __align__(1024) uint8_t tile[16384];
    __shared__ __align__(8) uint64_t bar;
    uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar), t = (uint32_t)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    uint64_t desc = ((uint64_t)(t >> 4) & 0x3fff) | (1ull << 62);
    for (int s = 0; s < steps; ++s) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16384;" :: "r"(b));
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                :: "r"(t), "l"(&map), "r"(s * 64), "r"(0), "r"(b) : "memory");
        }
        asm volatile("{\n.reg .pred p;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra wait;\n}" :: "r"(b), "r"(s & 1) : "memory");
        asm volatile("wgmma.fence.sync.aligned;");
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(desc), "l"(desc));
        asm volatile("wgmma.commit_group.sync.aligned;");
        d[0] += 1.0f;
        asm volatile("wgmma.wait_group.sync.aligned 0;");
    }
    out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
