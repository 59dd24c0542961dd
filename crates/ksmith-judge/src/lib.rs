//! Cases, reference, gates, statistics, verdict.
//!
//! The judge holds the secrets, the float64 expectations and the clock; candidates run in workers that hold none of
//! them. [`Judge`] is the surface for the loop; everything else is offered for tests, tools and the audit.

mod audit;
pub mod bench;
pub mod cases;
pub mod codes;
pub mod compare;
mod device;
mod gates;
mod judge;
pub mod number;
pub mod reference;
pub mod statistics;

pub use audit::{Audit, Finding as AuditFinding, Severity, audit};
pub use device::{Checked, compile_for_device};
pub use judge::{DevFailure, DevTime, Effort, Halt, Judge, JudgeError, JudgeOptions, Ranking};

#[cfg(test)]
ksmith_box::intercept_tests!(ksmith_worker::intercept);
