//! The task contract: parse, expand, check, lock.
//!
//! The lowest crate: words that every other part shares (digests, dtypes, exit codes) live here too.

mod bind;
mod brief;
pub mod candidate;
pub mod contract;
mod digest;
mod document;
mod dtype;
mod error;
mod exit;
pub mod expr;
mod fill;
pub mod instance;
mod nearest;
mod resolve;
mod task;

pub use brief::{Brief, BriefWorkload, BudgetLeft, Outcome, Proposal};
pub use candidate::Candidate;
pub use contract::{AxisValues, Backend, Contract};
pub use digest::{Digest, DigestError};
pub use dtype::DType;
pub use error::{CandidateError, ContractError};
pub use exit::ExitCode;
pub use fill::Fill;
pub use instance::{BindError, Bound, Instance, Role, ScalarArg, ScalarValue, Tensor, Tolerance};
pub use task::{Task, TypePinError};
