//! Bounds, spending, claims: pure functions from samples to statements.
//!
//! All gains are log-ratios of times, other over candidate: above zero the candidate is faster. Nothing here reads a
//! clock, starts a process or draws a number. `docs/statistics.md` states the rule and where each constant comes from.

mod interval;

pub use interval::Interval;
