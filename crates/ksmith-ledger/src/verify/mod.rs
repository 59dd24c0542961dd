//! Checks a run folder and says where the first damage is.
//!
//! Shares no code with the writer but the types: it hashes the bytes of each line as they lie on disk, rebuilds the
//! line from its fields by its own means, and walks the object folder itself. A bug in the writer therefore cannot
//! hide from it.
//!
//! Without an anchor (a head hash noted elsewhere, a public key known from elsewhere) only accidents are found:
//! whoever can write the folder can write a new chain, and sign it with a key of their own.

mod anchor;
mod chain;
mod check;
mod damage;
mod files;
mod lone;
mod objects;
mod report;
mod scan;

pub use check::verify;
pub use damage::{Cause, Damage, Place};
pub use lone::{Exported, LoneCertificate, verify_certificate, verify_export};
pub use report::{Anchors, CertificateCheck, Head, Report, RunState, VerifyOptions};
pub use scan::{Scan, scan};
