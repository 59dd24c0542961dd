//! What compiler and profiler say about a kernel.
//!
//! Pure functions from text or bytes to typed findings; nothing here runs a program. Two rules hold throughout: an
//! analysis that ran out of anything (an unknown opcode, a missing metric, a cut text) is never `clean`, and a number
//! that was not there is named as missing, never invented.

pub mod cpu_profile;
pub mod delta;
mod digest;
mod finding;
mod loops;
pub mod ncu;
pub mod occupancy;
pub mod ptxas;
pub mod reading;
pub mod remarks;
pub mod roofline;
pub mod sass;
pub mod x86;

pub use digest::{NextEdit, ProfileDigest, digest};
pub use finding::{Finding, Report, Scale, Severity};
pub use loops::LoopRange;
