//! Drives the scheduler without a machine: synthetic models and recorded A/A timings.
//!
//! Simulations are how the rule's rates are known (`docs/results/statistics.md`); they run the very code that judges.

mod model;
mod random;
mod rates;
mod replay;

pub use model::{Machine, Model, ModelHost};
pub use rates::{Rates, Source, Tally, plain_plan, simulate};
pub use replay::{Recording, RecordingError, ReplayHost};
