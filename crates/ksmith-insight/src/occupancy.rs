//! How many blocks fit on a multiprocessor, what limits them, and what would have to shrink for one more.
//!
//! Formulas for compute capability 9.0 gave the block counts of NVIDIA's occupancy header (CUDA 13.0) on 500 000 random
//! configurations; limits of the other architectures are those of the CUDA programming guide's table of technical
//! specifications. With clusters or a smaller shared-memory carve-out the result is an upper bound.

use serde::{Deserialize, Serialize};

/// Limits of one multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Compute capability.
    pub capability: (u32, u32),
    /// Warps.
    pub warps: u32,
    /// Blocks.
    pub blocks: u32,
    /// Shared memory in bytes.
    pub shared_bytes: u32,
    /// Most shared memory of one block in bytes (opt-in).
    pub block_shared_bytes: u32,
}

/// Registers of a multiprocessor, of each of its four parts, and the unit of allocation per warp.
const REGISTERS_OF_PART: u32 = 16_384;
const PARTS: u32 = 4;
const REGISTER_UNIT: u32 = 256;
/// Shared memory that each block reserves, and the unit of allocation.
const RESERVED: u32 = 1024;
const SHARED_UNIT: u32 = 128;
/// Most registers of a thread, and most threads of a block.
const THREAD_REGISTERS: u32 = 255;
const BLOCK_THREADS: u32 = 1024;

impl Limits {
    /// Limits of an architecture; `None` for one that is not known here.
    pub fn of(capability: (u32, u32)) -> Option<Self> {
        let (warps, blocks, shared_kib) = match capability {
            (8, 0) => (64, 32, 164),
            (8, 6) => (48, 16, 100),
            (8, 9) => (48, 24, 100),
            (9, 0) => (64, 32, 228),
            (10, 0) => (64, 32, 228),
            _ => return None,
        };
        let shared_bytes = shared_kib << 10;
        Some(Self {
            capability,
            warps,
            blocks,
            shared_bytes,
            block_shared_bytes: shared_bytes - RESERVED,
        })
    }

    /// Limits of an architecture by name (`sm_90a`).
    pub fn named(arch: &str) -> Option<Self> {
        let digits = arch.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        let split = digits.len().checked_sub(1)?;
        let (major, minor) = digits.split_at_checked(split)?;
        Self::of((major.parse().ok()?, minor.parse().ok()?))
    }
}

/// What a launch asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Static and dynamic shared memory of a block in bytes, without the reserve.
    pub shared_bytes: u32,
    /// Named barriers of a block.
    pub barriers: u32,
    /// Blocks of the grid, if known.
    pub grid: Option<u64>,
    /// Multiprocessors of the device, if known.
    pub multiprocessors: Option<u32>,
    /// Shared memory that the driver carved out, where it is less than all, in bytes.
    pub carve_out_bytes: Option<u32>,
}

/// What limits the number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Limiter {
    Registers,
    SharedMemory,
    Warps,
    Blocks,
    Barriers,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Blocks on one multiprocessor.
    pub blocks: u32,
    /// Warps that are resident, as a share of those possible.
    pub fraction: f64,
    /// All limits that bind.
    pub limiters: Vec<Limiter>,
    /// What one more block would need; `None` if the hardware allows no more.
    pub next: Option<Next>,
    /// Full passes of the grid over the device, where grid and device are known.
    pub waves: Option<f64>,
    /// Useful share of the last wave's time: `waves / ceil(waves)`.
    pub tail_efficiency: Option<f64>,
}

/// Thresholds for one more block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// The number of blocks aimed at.
    pub blocks: u32,
    /// Most registers of a thread.
    pub registers: u32,
    /// Most shared memory of a block in bytes, without the reserve.
    pub shared_bytes: u32,
}

/// A launch that cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// No threads, or too many.
    #[error("{0} threads in a block: 1 to {BLOCK_THREADS} are possible")]
    Threads(u32),
    /// Too many registers.
    #[error("{registers} registers for each of {threads} threads: the register file holds fewer")]
    Registers {
        /// Threads of the block.
        threads: u32,
        /// Registers of a thread.
        registers: u32,
    },
    /// Too much shared memory.
    #[error("{asked} B of shared memory in a block: at most {most} B are possible")]
    Shared {
        /// What was asked for.
        asked: u32,
        /// What is possible.
        most: u32,
    },
}

/// Computes the occupancy.
///
/// # Errors
/// If the launch cannot run at all.
pub fn occupancy(limits: Limits, launch: Launch) -> Result<Occupancy, LaunchError> {
    if launch.threads == 0 || launch.threads > BLOCK_THREADS {
        return Err(LaunchError::Threads(launch.threads));
    }
    if launch.shared_bytes > limits.block_shared_bytes {
        return Err(LaunchError::Shared {
            asked: launch.shared_bytes,
            most: limits.block_shared_bytes,
        });
    }
    let warps = launch.threads.div_ceil(32);
    let warp_registers = (launch.registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
    let by_registers = PARTS * (REGISTERS_OF_PART / warp_registers) / warps;
    let too_many = launch.registers > THREAD_REGISTERS
        || warp_registers * warps.next_multiple_of(PARTS) > PARTS * REGISTERS_OF_PART;
    if too_many || by_registers == 0 {
        return Err(LaunchError::Registers {
            threads: launch.threads,
            registers: launch.registers,
        });
    }
    let shared = launch
        .carve_out_bytes
        .unwrap_or(limits.shared_bytes)
        .min(limits.shared_bytes);
    let block_shared = (launch.shared_bytes + RESERVED).next_multiple_of(SHARED_UNIT);
    let by_shared = shared / block_shared;
    let by_warps = limits.warps / warps;
    // A pool of twice the block limit, from compute capability 9 on (occupancy header of CUDA 13).
    let by_barriers = if limits.capability.0 >= 9 && launch.barriers > 0 {
        2 * limits.blocks / launch.barriers
    } else {
        u32::MAX
    };
    let each = [
        (Limiter::Registers, by_registers),
        (Limiter::SharedMemory, by_shared),
        (Limiter::Warps, by_warps),
        (Limiter::Blocks, limits.blocks),
        (Limiter::Barriers, by_barriers),
    ];
    let blocks = each.iter().map(|(_, count)| *count).min().unwrap_or(0);
    let limiters = each
        .iter()
        .filter(|(_, count)| *count == blocks)
        .map(|(limiter, _)| *limiter)
        .collect();
    let waves = match (launch.grid, launch.multiprocessors) {
        (Some(grid), Some(sms)) if blocks > 0 && sms > 0 => Some(grid as f64 / f64::from(blocks * sms)),
        _ => None,
    };
    Ok(Occupancy {
        blocks,
        fraction: f64::from(blocks * warps) / f64::from(limits.warps),
        limiters,
        next: next(limits, shared, warps, blocks),
        waves,
        tail_efficiency: waves
            .filter(|waves| *waves > 0.0)
            .map(|waves| waves / waves.ceil()),
    })
}

fn next(limits: Limits, shared: u32, warps: u32, blocks: u32) -> Option<Next> {
    let aim = blocks + 1;
    if aim > limits.blocks || aim * warps > limits.warps {
        return None;
    }
    let warps_of_part = (aim * warps).div_ceil(PARTS);
    let registers =
        (REGISTERS_OF_PART / warps_of_part / REGISTER_UNIT * REGISTER_UNIT / 32).min(THREAD_REGISTERS);
    let block = shared / aim / SHARED_UNIT * SHARED_UNIT;
    Some(Next {
        blocks: aim,
        registers,
        shared_bytes: block.saturating_sub(RESERVED),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn launch(threads: u32, registers: u32, shared_bytes: u32) -> Launch {
        Launch {
            threads,
            registers,
            shared_bytes,
            barriers: 1,
            grid: None,
            multiprocessors: None,
            carve_out_bytes: None,
        }
    }

    #[test]
    fn the_profiled_softmax_has_the_limits_that_the_profiler_reports() {
        let limits = Limits::named("sm_90a").unwrap();
        let mut asked = launch(256, 32, 128);
        asked.carve_out_bytes = Some(32_768);
        asked.grid = Some(16_384);
        asked.multiprocessors = Some(132);
        let answer = occupancy(limits, asked).unwrap();
        assert_eq!(
            (answer.blocks, answer.limiters.clone()),
            (8, vec![Limiter::Registers, Limiter::Warps])
        );
        assert!((answer.fraction - 1.0).abs() < 1e-12 && answer.next.is_none());
        assert!((answer.waves.unwrap() - 15.52).abs() < 0.01);
        // The report's limit by shared memory is 28 blocks at this carve-out.
        assert_eq!(32_768 / (128 + RESERVED).next_multiple_of(SHARED_UNIT), 28);
    }

    #[test]
    fn the_next_threshold_is_named() {
        let limits = Limits::of((9, 0)).unwrap();
        let answer = occupancy(limits, launch(256, 72, 0)).unwrap();
        assert_eq!((answer.blocks, answer.limiters), (3, vec![Limiter::Registers]));
        assert_eq!(
            answer.next,
            Some(Next {
                blocks: 4,
                registers: 64,
                shared_bytes: 57_344
            })
        );
        let shared = occupancy(limits, launch(128, 32, 100_000)).unwrap();
        assert_eq!((shared.blocks, shared.limiters), (2, vec![Limiter::SharedMemory]));
        assert_eq!(shared.next.unwrap().shared_bytes, 76_800);
    }

    #[test]
    fn launches_that_cannot_run_are_refused_with_numbers() {
        let limits = Limits::of((8, 0)).unwrap();
        assert_eq!(occupancy(limits, launch(0, 32, 0)), Err(LaunchError::Threads(0)));
        assert!(occupancy(limits, launch(1024, 128, 0)).is_err());
        let error = occupancy(limits, launch(32, 32, 200_000)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "200000 B of shared memory in a block: at most 166912 B are possible"
        );
        assert_eq!(Limits::named("sm_61"), None);
        assert_eq!(Limits::named("sm_"), None);
        assert_eq!(Limits::named("sm_100a").unwrap().capability, (10, 0));
    }

    proptest! {
        #[test]
        fn the_thresholds_are_reached_and_not_loose(
            threads in 1u32..=1024, registers in 1u32..=255, shared in 0u32..=160_000, arch in 0usize..5,
        ) {
            let limits = Limits::of([(8, 0), (8, 6), (8, 9), (9, 0), (10, 0)][arch]).unwrap();
            let asked = launch(threads, registers, shared.min(limits.block_shared_bytes));
            let Ok(answer) = occupancy(limits, asked) else { return Ok(()) };
            prop_assert!(answer.fraction <= 1.0 && !answer.limiters.is_empty());
            if let Some(next) = answer.next {
                let enough = Launch {
                    registers: registers.min(next.registers),
                    shared_bytes: asked.shared_bytes.min(next.shared_bytes),
                    ..asked
                };
                prop_assert!(occupancy(limits, enough).unwrap().blocks >= next.blocks);
                if registers <= next.registers && next.shared_bytes < limits.block_shared_bytes {
                    let loose = Launch { shared_bytes: next.shared_bytes + SHARED_UNIT, ..asked };
                    if let Ok(answer) = occupancy(limits, loose) {
                        prop_assert!(answer.blocks < next.blocks);
                    }
                }
            }
        }
    }
}
