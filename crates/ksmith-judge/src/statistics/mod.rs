//! Bounds, spending, claims: pure functions from samples to statements.
//!
//! All gains are log-ratios of times, other over candidate: above zero the candidate is faster. Nothing here reads a
//! clock, starts a process or draws a number. `docs/statistics.md` states the rule and where each constant comes from.

mod bounds;
mod claims;
mod control;
mod distribution;
mod interval;
mod lane;
mod robust;
mod spending;

pub use bounds::{MIN_SETS, median_bounds};
pub use claims::{
    DataDependence, Goal, GoalState, Regression, RegressionState, distribution_falls_short,
    distribution_floor, goal, regressions, unevenness_is_own,
};
pub(crate) use claims::{OtherMeasures, contradiction};
pub(crate) use control::ALPHA as CONTROL_ALPHA;
pub use control::{Control, claim_floor, control};
pub use interval::Interval;
pub(crate) use lane::{LaneValue, lane_value};
pub use robust::{median, spread};
pub use spending::{LOOKS, Power, confirmation_alpha, rejecting_alpha, required_pairs, required_pairs_from};
