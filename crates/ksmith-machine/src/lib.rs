//! What this machine is: processor, memory, clocks, compilers, devices, noise, and what it lacks.
//!
//! Facts only. Nothing here decides about a candidate; the judge records these facts beside its verdicts, the command
//! line shows them as `doctor`, and the worker asks [`quiet::wait`] for a moment without foreign load.

mod clock;
mod compiler;
mod cpu;
pub mod doctor;
mod gpu;
pub mod host;
mod kernel;
mod local;
mod machine;
mod noise;
mod nvml;
pub mod quiet;
mod safety;
mod system;
pub mod toolchain;

#[cfg(test)]
mod scripted;

pub use clock::Clock;
pub use compiler::{Compiler, CompilerKind};
pub use cpu::{Cache, CacheKind, Cpu};
pub use doctor::{
    Diagnosis, Examination, IsolationFacts, IsolationLayer, Probes, Rental, Route, RouteKind, Row, State,
    doctor, examine,
};
pub use gpu::{Gpu, GpuVirtualisation};
pub use kernel::{KernelError, launch_probe_kernel};
pub use local::LocalHost;
pub use machine::Machine;
pub use noise::{Noise, noise};
pub use nvml::{DeviceSample, Nvml, NvmlError};
pub use quiet::Load;
pub use safety::{AgentFacts, Measure, MeasureState, SafetyProbes, safety};
pub use system::System;
pub use toolchain::Toolchain;
