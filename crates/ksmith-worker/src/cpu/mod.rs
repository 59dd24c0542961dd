//! Runs a candidate's library in a box: challenge and response over shared memory.
//!
//! The judge's half is [`Worker`]; the worker's half is [`ROLE`].

mod buffers;
mod fault;
mod layout;
mod memory;
mod page;
mod role;
mod worker;

pub use fault::{Fault, FaultKind, Side, WorkerError};
pub use layout::{Access, Edge, Layout, Placement, Probe, Scalar};
pub use role::ROLE;
pub use worker::{Call, CallOptions, Wait, Worker, WorkerSpec};
