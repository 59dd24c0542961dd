//! The bodies of records, one type per kind.
//!
//! Fields are only ever added, each with a default, so that old ledgers stay readable. Times are milliseconds or
//! microseconds by suffix. Ratios are reference over candidate: above 1 the candidate is faster.

mod call;
mod candidate;
mod measure;
mod review;
mod run;

pub use call::{AgentCall, ModelCall, ModelSent, ToolCall};
pub use candidate::{
    Checked, Confirmed, Decided, Demoted, Profiled, Promoted, Proposed, Role, Screened, ShortlistEntry,
    Shortlisted, Tested,
};
pub use measure::{Arm, ArmTime, BenchStage, Benched, FloorLine, WorkloadGain};
pub use review::{
    Answered, Asked, NextEdit, ProcessGate, RaisedFinding, ReviewAttempt, ReviewDetail, Reviewed, Waited,
};
pub(crate) use run::is_zero;
pub use run::{
    Audited, BudgetLimits, BudgetSpent, Closed, Committed, Draft, Interrupted, Note, Outcome, Plan, PlanStep,
    Resumed, RunOpened, Torn,
};
