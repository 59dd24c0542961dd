//! How many blocks one multiprocessor holds.

use crate::cuda::driver::{DeviceFacts, KernelFacts};

/// Blocks that one multiprocessor holds at once.
///
/// Registers are given to a warp in units of 256, shared memory to a block in units of 128 bytes with 1 KiB reserved
/// (CUDA C++ Best Practices Guide, occupancy; compute capability 8.0 and later).
pub(super) fn blocks_per_sm(device: &DeviceFacts, facts: &KernelFacts, threads: u32, shared: u32) -> u32 {
    let warps = threads.div_ceil(32).max(1);
    let by_threads = device.threads_per_sm.unsigned_abs() / (warps * 32);
    let registers = (facts.registers.unsigned_abs().max(1) * 32).next_multiple_of(256) * warps;
    let by_registers = device.registers_per_sm.unsigned_abs() / registers;
    let memory = (facts.static_shared.unsigned_abs() + shared + 1024).next_multiple_of(128);
    let by_memory = device.shared_per_sm.unsigned_abs() / memory;
    by_threads.min(by_registers).min(by_memory).clamp(1, 32)
}
