//! What judge and device worker say to each other: JSON messages over one socket pair.

use serde::{Deserialize, Serialize};

use super::driver::KernelFacts;
use super::error::CudaFault;
use super::plan::ResolvedPlan;

/// From the judge.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Makes a context on this device.
    Open { ordinal: i32 },
    /// Loads a module and looks its kernels up by lowered name.
    Load { image: Vec<u8>, kernels: Vec<String> },
    /// Maps the physical memory that travels with this message, one descriptor per buffer.
    Map { slots: Vec<Vec<BufferSpec>> },
    /// Sets the plan of the calls to come.
    Plan { plan: ResolvedPlan },
    /// Runs the steps of one slot once.
    Call { slot: usize },
    /// Runs the steps of these slots one after the other in one stream, without waiting between them.
    Batch { slots: Vec<usize>, graph: bool },
    /// Drops all mappings.
    Unmap,
}

/// One buffer of a slot.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct BufferSpec {
    /// Size of the physical memory in bytes, a multiple of the granularity.
    pub(crate) physical: usize,
    /// Offset of the buffer's first byte in it.
    pub(crate) offset: usize,
    /// Whether the worker may write.
    pub(crate) writable: bool,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Done.
    Done,
    /// The kernels that were looked up.
    Loaded { kernels: Vec<KernelFacts> },
    /// The device time that the worker's events claim, in nanoseconds.
    Ran { event_ns: u64 },
    /// The candidate failed; the worker ends.
    Fault(CudaFault),
}
