//! The paired bench: process sets, lanes, stages, and what they say.
//!
//! The order of everything comes from a seed of the caller's; time, processes, cases and comparison stand behind
//! [`Host`] and [`Arm`]. Guards against kernels that are timed on other work than they are checked on (every timed
//! call is verified by the arm), and against hosts whose speed changes while one arm runs (lanes are interleaved).

mod arm;
mod clocks;
mod order;
mod pairs;
mod plan;
mod record;
mod report;
mod run;
mod set;
pub mod simulation;
mod stage;

pub use arm::{Arm, CaseId, Fault, Host, Load, Role, Stage, TimedCall};
pub use clocks::{Clocks, clocks};
pub use plan::{BaselineArm, Distribution, FlagControlArm, Plan, Settings, Workload};
pub use record::{ArmClocks, LaneRecord, SetRecord, StageRecord};
pub use report::{Comparison, Finding, Limit, Look, Part, Report, StageReport};
pub use run::{OrderSeed, measure};
