//! The float64 reference: compiled and run boxed, in a process of its own that lives over many cases.
//!
//! References, generators and checkers are trusted for their values, not with the machine: no network, no secrets, no
//! view of the judge. The judge reads their results through its own descriptor and never maps memory that they could
//! shrink under it.

mod driver;
mod error;
mod oracle;
mod process;
mod program;

pub use error::ReferenceError;
#[cfg(test)]
pub(crate) use oracle::DeviceTrust;
pub(crate) use oracle::output_kind;
pub use oracle::{Checkers, Oracle, OracleOptions};
pub use process::{Live, Scalar};
pub use program::{Argument, Kind, Program, Signature};
