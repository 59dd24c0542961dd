//! The state machine of a run: lock, draft, plan, rounds, confirmation, certificate.
//!
//! Every step appends to the ledger before the next begins, and the state of a run is a pure fold over its records
//! ([`Memory`]). Going on after a crash is therefore the same code as going on after a step: read the records, ask
//! what comes next, do it. This crate decides *when* something is judged and *what* is kept; what a candidate is
//! worth is said by the judge alone.

mod budget;
mod interrupt;
mod mechanisms;
mod options;
mod progress;

pub use budget::{Budget, Spent, Stop};
pub use interrupt::Interrupt;
pub use mechanisms::{Mechanism, Mechanisms, UnknownMechanism};
pub use options::{Backend, RunOptions, Sandbox, TypePick, TypePickError, WriterChoice};
pub use progress::{Event, Progress, Silent, Stage};
