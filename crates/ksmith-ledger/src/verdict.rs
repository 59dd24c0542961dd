//! Verdicts: what the judge says of one candidate, bound to the hashes of what it judged.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use crate::Gate;

/// The five things a judge can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// All gates pass and the confirmed gain over the champion is above the floor.
    Accept,
    /// Correct, undecided, point gain above zero.
    Revise,
    /// A gate failed, or the gain is bounded below the floor.
    Reject,
    /// The machine was too busy for a statement.
    Ambiguous,
    /// The judge could not judge.
    Error,
}

impl Decision {
    /// Whether anything is said of the candidate. A machine that was too busy or too noisy, and a judge that could not
    /// judge, say nothing: neither for nor against it.
    pub fn is_statement(self) -> bool {
        match self {
            Self::Accept | Self::Revise | Self::Reject => true,
            Self::Ambiguous | Self::Error => false,
        }
    }

    /// The name that stands in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Revise => "revise",
            Self::Reject => "reject",
            Self::Ambiguous => "ambiguous",
            Self::Error => "error",
        }
    }
}

/// Which tier of hardware the numbers speak of (DESIGN, invariant 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Measured on a CPU.
    Cpu,
    /// Measured on an NVIDIA GPU.
    Cuda,
}

impl Scope {
    /// The name that stands in records (`scope: "cpu"`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// The sentence that accompanies every result of this scope; empty where none is needed.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Cpu => "Measured on a CPU; this is no statement about GPU performance.",
            Self::Cuda => "",
        }
    }
}

/// A ratio of times, reference over candidate: above 1 the candidate is faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Speedup {
    /// Point estimate (median of paired ratios).
    pub point: f64,
    /// Lower bound of the confidence interval; the headline.
    pub lower: f64,
    /// Upper bound of the confidence interval.
    pub upper: f64,
}

/// How one gate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateOutcome {
    /// The check ran and found nothing.
    Pass,
    /// The check ran and the candidate failed it.
    Fail,
    /// The check could not run.
    Error,
    /// The check does not apply to this task; the evidence names why.
    Skipped,
}

impl GateOutcome {
    /// The name that stands in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

/// One gate of one scoring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GateResult {
    /// Which gate.
    pub name: Gate,
    /// How it ended.
    pub result: GateOutcome,
    /// Stable `gate/cause` string; set unless the gate passed.
    pub code: Option<String>,
    /// Wall time of the gate in milliseconds.
    pub ms: f64,
    /// What was seen. For a hidden case only the class of cause, never shape, value, index or distribution.
    pub evidence: serde_json::Value,
}

/// What the judge says of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// The decision.
    pub verdict: Decision,
    /// Stable `gate/cause` string of the deciding check, or `accept/confirmed`.
    pub code: String,
    /// The deciding gate, if one decided.
    pub gate: Option<Gate>,
    /// The trust tier (`native`, `device`, …, with marks such as `judge-shares-cpu`).
    pub tier: String,
    /// The isolation level the candidate ran under.
    pub isolation: String,
    /// What hardware the result speaks of.
    pub scope: Scope,
    /// The sentence that goes with the scope.
    pub scope_note: String,
    /// Gain over the champion.
    pub speedup: Option<Speedup>,
    /// Gain over the task's baseline.
    pub over_baseline: Option<Speedup>,
    /// Gain over the flag control.
    pub over_flag_control: Option<Speedup>,
    /// Every gate that ran, in order.
    pub gates: Vec<GateResult>,
    /// Hash of the locked task.
    pub task: Digest,
    /// Hash of the candidate's files.
    pub candidate: Digest,
    /// Hash of the judge's own build.
    pub judge: Digest,
    /// Hash of the device record.
    pub device: Digest,
}

impl Verdict {
    /// Hash of the verdict's canonical JSON, by which records and certificates name it.
    pub fn digest(&self) -> Digest {
        let value = serde_json::to_value(self).unwrap_or_default();
        Digest::of(crate::canonical(&value).as_bytes())
    }
}
