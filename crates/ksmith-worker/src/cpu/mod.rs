//! Runs a candidate's library in a box: challenge and response over shared memory.
//!
//! The judge's half is [`Worker`]; the worker's half is [`ROLE`].

mod buffers;
mod challenge;
mod fault;
mod layout;
mod memory;
mod page;
mod role;
mod spec;
mod worker;

pub use fault::{Fault, FaultKind, Side, WorkerError};
pub use layout::{Access, Edge, Layout, Placement, Probe, Scalar};
pub use memory::allowed_cpus;
pub use role::ROLE;
pub use spec::{Call, CallOptions, Wait, WorkerSpec};
pub use worker::Worker;
