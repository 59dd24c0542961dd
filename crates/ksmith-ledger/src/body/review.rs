//! Bodies about opinions and about the course of a run: reviews, process gates, questions to people, waiting.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BlobRef;

/// A reviewer spoke; a reviewer may veto or direct and never promotes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reviewed {
    /// The candidate, if one was reviewed.
    #[serde(default)]
    pub candidate: Option<String>,
    /// Who reviewed.
    pub reviewer: String,
    /// Whether it objects, or gave no valid verdict.
    pub veto: bool,
    /// What it says, one sentence each.
    pub findings: Vec<String>,
    /// Its whole answer.
    #[serde(default)]
    pub text: Option<BlobRef>,
    /// Occasion, binding and attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<ReviewDetail>>,
}

/// How a review came about and what it is bound to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewDetail {
    /// Why it was asked for (`crown`, `plateau`, `plan`, …).
    pub occasion: String,
    /// What tells this occasion from others of its kind.
    #[serde(default)]
    pub mark: String,
    /// `pass`, `direct`, `veto` or `not-passed`.
    pub outcome: String,
    /// Stable code of anything but a pass.
    #[serde(default)]
    pub code: Option<String>,
    /// Whose model reviewed.
    pub vendor: String,
    /// `other-vendor`, `no-model` or `same-vendor-allowed`.
    pub independence: String,
    /// Number of this review of the line of candidates, from 1.
    pub round: u32,
    /// Hash of the locked task.
    pub task: Digest,
    /// Hash of the files under review.
    pub source: Digest,
    /// Hash of the judge's build.
    pub judge: Digest,
    /// Every attempt; empty for rules of the tool.
    #[serde(default)]
    pub attempts: Vec<ReviewAttempt>,
    /// The findings.
    #[serde(default)]
    pub raised: Vec<RaisedFinding>,
    /// What to try next.
    #[serde(default)]
    pub next: Option<NextEdit>,
    /// A critique of a plan, whole: required changes, advice, open decisions.
    #[serde(default)]
    pub data: Value,
}

/// One attempt to get a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReviewAttempt {
    /// The number that its answer had to carry.
    pub nonce: String,
    /// Why it does not count; absent if it does.
    #[serde(default)]
    pub code: Option<String>,
    /// What was seen.
    #[serde(default)]
    pub detail: String,
    /// What was asked.
    pub prompt: BlobRef,
    /// What was said.
    pub said: BlobRef,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// One finding of a reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RaisedFinding {
    /// Short name of what is wrong.
    pub key: String,
    /// Whether it stands against the candidate.
    pub blocking: bool,
    /// File and line, or the part of the contract.
    pub location: String,
    /// What is wrong.
    pub text: String,
    /// How to see it.
    pub evidence: String,
    /// Whether it was raised before on this line of candidates.
    #[serde(default)]
    pub repeated: bool,
}

/// What a reviewer would try next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextEdit {
    /// A direction's name.
    pub direction: String,
    /// Exactly one edit.
    pub edit: String,
}

/// A mechanical gate on the process refused a candidate, or changed the course of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessGate {
    /// Stable `process/…` code.
    pub code: String,
    /// The candidate that it is about, if any.
    #[serde(default)]
    pub candidate: Option<String>,
    /// Whether the candidate is refused.
    pub refused: bool,
    /// What was seen, one sentence; never a secret.
    pub detail: String,
    /// Facts that go with it.
    #[serde(default)]
    pub data: Value,
}

/// Time that was spent waiting: neither work nor a stall, and no part of the wall budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waited {
    /// For what (`person`, `machine`, a job).
    pub what: String,
    /// How long, in seconds.
    pub seconds: f64,
}

/// A question was put to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Asked {
    /// Its id within the run.
    pub id: String,
    /// The question.
    pub text: String,
    /// The choices; empty means that any text answers.
    pub options: Vec<String>,
    /// How long an answer is waited for, in seconds; then the run stops.
    pub limit_s: f64,
}

/// A question was answered, or its deadline passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answered {
    /// The question.
    pub id: String,
    /// The answer of a person; absent where the deadline passed, which means stop.
    pub answer: Option<String>,
}
