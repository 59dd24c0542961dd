//! What the measurement says, with every figure that it rests on.

use ksmith_ledger::{Decision, Speedup};
use serde::{Deserialize, Serialize};

use super::{Role, Stage, StageRecord};
use crate::statistics::Interval;

/// Both stages of one scoring, or as far as they went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What follows for the candidate.
    pub finding: Finding,
    /// The decision stage.
    pub decision: StageReport,
    /// The confirmation, if the decision was for the candidate.
    pub confirmation: Option<StageReport>,
}

impl Report {
    /// The stage whose figures stand: the confirmation where there is one.
    pub fn last(&self) -> &StageReport {
        self.confirmation.as_ref().unwrap_or(&self.decision)
    }
}

/// How a measurement ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Both stages bound the gain above the floor.
    Confirmed,
    /// The decision stage did, the confirmation did not.
    NotConfirmed,
    /// Neither bounded above nor below the floor.
    Undecided {
        /// Why no more pairs were taken.
        limit: Limit,
    },
    /// The gain is bounded below the floor.
    BelowFloor,
    /// The quartiles claim what medians, means or the share of preempted calls contradict.
    Contradiction {
        /// Which figure contradicts, and by how much.
        what: String,
    },
    /// Too few calls ran unpreempted.
    MachineBusy {
        /// Share of calls that did.
        unpreempted: f64,
    },
    /// The A/A control is off zero or too wide.
    Noisy {
        /// What the control said.
        what: String,
    },
    /// An arm failed; the record so far is kept.
    Fault {
        /// Whose fault.
        role: Role,
        /// Stable `gate/cause` string.
        code: String,
        /// What was seen.
        evidence: serde_json::Value,
    },
    /// The judge failed.
    Broken {
        /// What failed.
        what: String,
    },
}

/// What ended a stage that decided nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The planned number of pairs was taken.
    Pairs,
    /// The time limit came first.
    Time,
}

impl Finding {
    /// The decision of this gate and its stable code. `point` is the gain's point estimate as a log-ratio.
    pub fn verdict(&self, point: f64) -> (Decision, String) {
        let undecided = if point > 0.0 {
            Decision::Revise
        } else {
            Decision::Reject
        };
        match self {
            Self::Confirmed => (Decision::Accept, "accept/confirmed".to_owned()),
            Self::NotConfirmed => (undecided, "gain/not-confirmed".to_owned()),
            Self::Undecided { .. } => (undecided, "gain/undecided".to_owned()),
            Self::BelowFloor => (Decision::Reject, "gain/below-floor".to_owned()),
            Self::Contradiction { .. } => (Decision::Reject, "bench/contradiction".to_owned()),
            Self::MachineBusy { .. } => (Decision::Ambiguous, "bench/machine-busy".to_owned()),
            Self::Noisy { .. } => (Decision::Error, "bench/noisy".to_owned()),
            Self::Fault {
                role: Role::Candidate,
                code,
                ..
            } => (Decision::Reject, code.clone()),
            Self::Fault { .. } => (Decision::Error, "bench/other-arm-failed".to_owned()),
            Self::Broken { .. } => (Decision::Error, "bench/broken".to_owned()),
        }
    }
}

/// One stage: raw samples, looks, and the figures of its last look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Which stage.
    pub stage: Stage,
    /// The one-sided error probability of its accepting bound.
    pub alpha: f64,
    /// Pairs that the A/A spread asked for.
    pub planned_pairs: u32,
    /// The looks in order.
    pub looks: Vec<Look>,
    /// Share of calls that ran unpreempted.
    pub unpreempted: f64,
    /// Champion against its copy (log-ratio).
    pub control: Option<Interval>,
    /// The floor that counted: the larger of the task's and the A/A half-width (log-ratio); none without a control.
    pub floor: Option<f64>,
    /// Candidate over champion.
    pub over_champion: Option<Comparison>,
    /// Candidate over baseline.
    pub over_baseline: Option<Comparison>,
    /// Candidate over flag control.
    pub over_flag_control: Option<Comparison>,
    /// Raw samples.
    pub record: StageRecord,
}

/// One fixed look.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Pairs at this look.
    pub pairs: u32,
    /// Process sets at this look.
    pub sets: u32,
    /// Robust spread of the A/A pairs (log-ratio).
    pub control_spread: f64,
    /// Bounds of the gain at this look's error probability (log-ratio).
    pub gain: Interval,
}

/// The candidate against one other arm. Log-ratios, other over candidate: above zero the candidate is faster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Against whom.
    pub against: Role,
    /// All workloads, weighted.
    pub all: Interval,
    /// Each workload by itself.
    pub workloads: Vec<Part>,
    /// Each distribution of each workload.
    pub distributions: Vec<Part>,
    /// Plain median time of the candidate's unpreempted calls in nanoseconds, by workload.
    pub candidate_median_ns: Vec<f64>,
    /// Plain median time of the other's unpreempted calls in nanoseconds, by workload.
    pub other_median_ns: Vec<f64>,
}

impl Comparison {
    /// As a ratio of times with its interval. An open upper end becomes the largest double: JSON has no infinity.
    pub fn speedup(&self) -> Speedup {
        let ratio = |log_ratio: f64| log_ratio.exp().min(f64::MAX);
        Speedup {
            point: ratio(self.all.point),
            lower: ratio(self.all.lower),
            upper: ratio(self.all.upper),
        }
    }
}

/// One workload or one distribution of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Index of the workload.
    pub workload: u32,
    /// Index of the distribution; `None` for the whole workload.
    pub distribution: Option<u32>,
    /// Pairs it rests on.
    pub pairs: u32,
    /// Point and 99 % bounds (log-ratio).
    pub interval: Interval,
    /// The pair values by process set, for other levels.
    pub sets: Vec<Vec<f64>>,
}
