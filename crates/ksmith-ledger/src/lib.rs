//! The record of a run: hash chain, object store, verify, views.
//!
//! Shapes that are written to disk and shown by several parts (verdicts, gates, certificates) are defined here.

mod gate;
mod verdict;

pub use gate::Gate;
pub use verdict::{Decision, GateOutcome, GateResult, Scope, Speedup, Verdict};
