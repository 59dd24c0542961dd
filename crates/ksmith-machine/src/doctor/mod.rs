//! `doctor`: what this machine offers a kernel engineer, what it lacks, how to fix it, and which route to take.
//!
//! Each probe is a function of what a [`Host`](crate::host::Host) answers, so that machines which are not at hand can
//! be scripted. A probe never installs, never needs root, and never waits without limit.

mod agents;
mod cuda;
mod examine;
mod here;
mod profiler;
mod python;
mod route;
mod row;
#[cfg(test)]
mod tests;

pub use examine::{Examination, examine};
pub use route::{Route, RouteKind};
pub use row::{Diagnosis, IsolationFacts, IsolationLayer, Probes, Rental, Row, State, doctor};
