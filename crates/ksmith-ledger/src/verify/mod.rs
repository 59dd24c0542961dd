//! Checks a run folder and says where the first damage is.
//!
//! Shares no code with the writer but the types: it hashes the bytes of each line as they lie on disk, rebuilds the
//! line from its fields by its own means, and walks the object folder itself. A bug in the writer therefore cannot
//! hide from it.

mod damage;
mod scan;

pub use damage::{Cause, Damage, Place};
pub use scan::{Scan, scan};
