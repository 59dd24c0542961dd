//! The task contract: parse, expand, check, lock.
//!
//! The lowest crate: words that every other part shares (digests, dtypes, exit codes) live here too.

pub mod abi;
mod ambiguity;
mod bind;
mod brief;
pub mod candidate;
mod chain;
pub mod contract;
mod convert;
mod digest;
mod document;
mod dtype;
mod error;
mod exit;
pub mod expr;
mod family;
mod fill;
mod full;
pub mod instance;
pub mod lint;
mod lock;
mod nearest;
mod resolve;
pub mod scaffold;
mod schema;
mod shapes;
mod task;

pub use ambiguity::{Ambiguity, Class, ambiguity};
pub use brief::{Brief, BriefWorkload, BudgetLeft, Outcome, Proposal};
pub use candidate::Candidate;
pub use chain::chain;
pub use contract::{AxisValues, Backend, Contract};
pub use digest::{Digest, DigestError};
pub use dtype::DType;
pub use error::{CandidateError, ContractError};
pub use exit::ExitCode;
pub use family::{FAMILIES, Family};
pub use fill::Fill;
pub use instance::{BindError, Bound, Instance, Role, ScalarArg, ScalarValue, Tensor, Tolerance, row_major};
pub use lint::{Finding, LintReport, Severity};
pub use lock::{Change, Lock, LockError};
pub use schema::{candidate_schema, task_schema};
pub use shapes::ShapeLimits;
pub use task::{Task, TypePinError};
