//! The task contract: parse, expand, check, lock.
//!
//! The lowest crate: words that every other part shares (digests, dtypes, exit codes) live here too.

mod digest;
mod dtype;
mod exit;

pub use digest::{Digest, DigestError};
pub use dtype::DType;
pub use exit::ExitCode;
