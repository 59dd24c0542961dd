//! What the analytic prior and the preconditions know about the machine.

use ksmith_machine::Machine;
use ksmith_task::expr::Env;

/// The few facts about a machine that decide between configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Width of the widest vector registers in bits.
    pub vector_bits: i64,
    /// Number of architectural vector registers.
    pub vector_registers: i64,
    /// Whether fused multiply-add exists.
    pub fma: bool,
    /// Whether the 8-bit dot-product instructions exist.
    pub vnni: bool,
    /// Whether the instructions on bfloat16 exist.
    pub bf16: bool,
    /// First-level data cache of one core, in bytes.
    pub l1_bytes: i64,
    /// Second-level cache of one core, in bytes.
    pub l2_bytes: i64,
    /// Last-level cache, in bytes.
    pub l3_bytes: i64,
    /// Threads that a candidate may use.
    pub threads: i64,
    /// Compute capability of the first GPU times ten (90 for 9.0); 0 without one.
    pub sm: i64,
}

impl Facts {
    /// Reads the facts from a machine record.
    pub fn of(machine: &Machine, threads: u32) -> Self {
        let has = |feature: &str| machine.cpu.features.iter().any(|known| known == feature);
        let cache = |level: u32, otherwise: i64| {
            machine
                .cpu
                .caches
                .iter()
                .filter(|cache| cache.level == level && cache.kind != ksmith_machine::CacheKind::Instruction)
                .map(|cache| i64::try_from(cache.bytes).unwrap_or(i64::MAX))
                .max()
                .unwrap_or(otherwise)
        };
        let (vector_bits, vector_registers) = if has("avx512f") {
            (512, 32)
        } else if has("avx2") {
            (256, 16)
        } else if has("asimd") {
            (128, 32)
        } else {
            (128, 16)
        };
        Self {
            vector_bits,
            vector_registers,
            fma: has("fma") || has("asimd"),
            vnni: has("avx512_vnni") || has("avx_vnni"),
            bf16: has("avx512_bf16"),
            l1_bytes: cache(1, 32 << 10),
            l2_bytes: cache(2, 512 << 10),
            l3_bytes: cache(3, 8 << 20),
            threads: i64::from(threads.max(1)),
            sm: machine
                .gpus
                .first()
                .and_then(|gpu| gpu.compute_capability)
                .map_or(0, |(major, minor)| i64::from(10 * major + minor)),
        }
    }

    /// Binds the facts under the names that manifests use.
    pub(crate) fn enter(&self, env: &mut Env) {
        env.set("vector_bits", self.vector_bits);
        env.set("vector_registers", self.vector_registers);
        env.set("fma", self.fma);
        env.set("vnni", self.vnni);
        env.set("bf16_isa", self.bf16);
        env.set("l1", self.l1_bytes);
        env.set("l2", self.l2_bytes);
        env.set("l3", self.l3_bytes);
        env.set("threads", self.threads);
        env.set("sm", self.sm);
    }
}
