//! Runs a candidate's device code: the judge's process owns all device memory, a boxed worker maps it.
//!
//! The judge's half is [`Owner`] (context, physical memory, uploads, poison, comparison) and [`Worker`] (one boxed
//! process per candidate); the worker's half is [`ROLE`]. The worker's context holds the candidate's module and nothing
//! else: inputs are mapped read-only, outputs and workspaces read-write, with unmapped ranges around each. Times that
//! the worker reports are claims; the judge's own clock over serial calls must agree (JUDGE, "CUDA worker").

mod checks;
mod compile;
mod driver;
mod error;
mod making;
mod message;
mod nvrtc;
mod owner;
mod plan;
mod role;
mod roofs;
mod socket;
mod worker;

pub use checks::{Checks, Compared, NOTHING, RealRule, SOURCE, WholeRule};
pub use compile::{COMPILE_ROLE, CompileOptions, Cubin, compile};
pub use driver::{DeviceFacts, KernelFacts, available};
pub use error::{CudaError, CudaFault};
pub use making::{Draw, DrawLaw, DrawRows, DrawType};
pub use message::Cache;
pub use owner::{Beside, Buffer, BufferAccess, BufferEdge, Owner};
pub use plan::{KernelLookup, Launch, Param, PlanError, ResolvedPlan, ResolvedStep, resolve};
pub use role::ROLE;
pub use roofs::Roofs;
pub use worker::{Timing, Worker, WorkerOptions};
