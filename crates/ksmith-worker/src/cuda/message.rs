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
    /// Maps the memory that cold calls write to first; one descriptor.
    Flush { buffer: BufferSpec },
    /// Gives a slot its buffers, one descriptor each, and the plan of its calls. What the slot had before is dropped.
    Slot {
        slot: usize,
        buffers: Vec<BufferSpec>,
        plan: ResolvedPlan,
    },
    /// Another plan for the same buffers.
    Plan { slot: usize, plan: ResolvedPlan },
    /// Drops a slot's mappings.
    Clear { slot: usize },
    /// Runs the steps of one slot once.
    Call { slot: usize, cache: Cache },
    /// Runs the steps of these slots one after the other in one stream, without waiting between them.
    Batch { slots: Vec<usize>, graph: bool },
}

/// The state of the L2 when a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// As the judge's copies left it.
    AsIs,
    /// Persisting lines reset, then twice the cache written in the worker's own stream: nothing of the inputs is left,
    /// and the launch is queued before the write ends, so that no host work stands between the events.
    Cold,
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
