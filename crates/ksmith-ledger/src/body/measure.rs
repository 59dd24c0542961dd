//! Bodies about measurements.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobRef, GateResult, Speedup};

/// Which measurement it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BenchStage {
    /// Quick look that only rejects.
    Screen,
    /// The decision.
    Decision,
    /// The confirmation.
    Confirmation,
}

impl BenchStage {
    /// The name that stands in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Screen => "screen",
            Self::Decision => "decision",
            Self::Confirmation => "confirmation",
        }
    }
}

/// Who ran in one arm of a measurement.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// The candidate.
    Candidate,
    /// The champion of the time.
    Champion,
    /// The task's baseline.
    Baseline,
    /// The baseline's source under the best flag set.
    FlagControl,
    /// The A/A copy.
    Control,
    /// A peer of the contract.
    Peer,
}

impl Arm {
    /// The name that stands in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Champion => "champion",
            Self::Baseline => "baseline",
            Self::FlagControl => "flag-control",
            Self::Control => "control",
            Self::Peer => "peer",
        }
    }
}

/// Plain times of one arm on one workload, in microseconds per call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ArmTime {
    /// The workload.
    pub workload: String,
    /// The arm.
    pub arm: Arm,
    /// Name of a peer, or id of the candidate in the arm.
    #[serde(default)]
    pub name: Option<String>,
    /// The clock (`wall`, `device-event`).
    pub clock: String,
    /// The lane (`challenge`, `cold-l2`, `back-to-back`, …).
    pub lane: String,
    /// Timed calls that count.
    pub calls: u64,
    /// Median.
    pub median_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub std_us: f64,
    /// Least.
    pub min_us: f64,
    /// 10 % quantile.
    pub p10_us: f64,
    /// 90 % quantile.
    pub p90_us: f64,
}

/// The gain on one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadGain {
    /// The workload.
    pub workload: String,
    /// Its weight.
    pub weight: f64,
    /// Over the champion.
    pub over_champion: Option<Speedup>,
    /// Over the baseline.
    pub over_baseline: Option<Speedup>,
    /// Over the flag control.
    #[serde(default)]
    pub over_flag_control: Option<Speedup>,
}

/// What physics allows on one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FloorLine {
    /// The workload.
    pub workload: String,
    /// Bytes that must be moved.
    pub bytes: f64,
    /// Operations that must be done.
    pub flops: f64,
    /// The probe that set the floor (`read`, `write`, `copy`).
    pub probe: String,
    /// The floor in microseconds.
    pub floor_us: f64,
    /// The candidate's median in microseconds.
    pub candidate_us: f64,
}

/// A candidate was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Benched {
    /// The candidate.
    pub candidate: String,
    /// Which measurement.
    pub stage: BenchStage,
    /// The champion it ran against; absent means the baseline.
    pub champion: Option<String>,
    /// Pairs of lanes.
    pub pairs: u64,
    /// Process sets.
    pub sets: u64,
    /// Gain over the champion.
    pub over_champion: Option<Speedup>,
    /// Gain over the baseline.
    pub over_baseline: Option<Speedup>,
    /// Gain over the flag control.
    pub over_flag_control: Option<Speedup>,
    /// The A/A control's ratio.
    pub control: Option<Speedup>,
    /// Confidence of the bounds, such as 0.99.
    pub confidence: f64,
    /// Per workload.
    pub workloads: Vec<WorkloadGain>,
    /// Plain times.
    pub times: Vec<ArmTime>,
    /// What physics allows.
    #[serde(default)]
    pub floor: Vec<FloorLine>,
    /// Gates of this step, in order.
    pub gates: Vec<GateResult>,
    /// Stable `gate/cause` string of the failure, if one failed.
    pub code: Option<String>,
    /// Raw samples.
    #[serde(default)]
    pub samples: Option<BlobRef>,
    /// Load of the machine and the like.
    #[serde(default)]
    pub conditions: Value,
    /// Wall time in milliseconds.
    pub ms: f64,
}
