//! Bodies about the run as a whole.

use std::collections::BTreeMap;

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobRef, RevealedSeed, Scope, SeedCommitment, TreeRef};

/// The first record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunOpened {
    /// The run's id, which is also the name of its folder.
    pub run: String,
    /// Version of the tool that writes.
    pub tool: String,
    /// The command line: the program by name only, files as seen from where it ran.
    pub command: Vec<String>,
    /// Name of the task.
    pub task: String,
    /// Instance of the task, such as `softmax[T=f32]`.
    pub instance: String,
    /// What hardware the numbers of this run speak of.
    pub scope: Scope,
    /// The sentence that goes with the scope.
    pub scope_note: String,
    /// The expanded contract that was locked, as text.
    pub contract: BlobRef,
    /// Hashes of everything locked: `task`, `reference`, `baseline`, `judge`, …
    pub locks: BTreeMap<String, Digest>,
    /// The bytes of `task.lock.json`, if the run writes one.
    #[serde(default)]
    pub lock_file: Option<BlobRef>,
    /// The baseline's files.
    pub baseline: TreeRef,
    /// The machine record (`doctor`), as JSON.
    pub machine: Value,
    /// Hash of the device record, as it stands in verdicts.
    pub device: Digest,
    /// The device in words, such as `AMD EPYC 7B13, 2 CPUs`.
    pub device_name: String,
    /// The compiler in words, such as `gcc 14.2.0`.
    pub compiler: String,
    /// Isolation level that workers run under.
    pub isolation: String,
    /// Whether the user asked to run without a sandbox; shown loudly everywhere.
    pub unsandboxed: bool,
    /// Trust tier with its marks.
    pub tier: String,
    /// Timing protocol, such as `course`.
    pub protocol: String,
    /// The goal as a time ratio to the baseline.
    pub goal: f64,
    /// Every mechanism and whether it is on.
    pub mechanisms: BTreeMap<String, bool>,
    /// Who writes candidates, such as `offline`.
    pub writer: String,
    /// Who reviews, if anyone.
    #[serde(default)]
    pub reviewer: Option<String>,
    /// Limits of this run.
    pub budget: BudgetLimits,
    /// Seed of the search (public; the judge's seeds are secret until the end).
    #[serde(default)]
    pub search_seed: Option<u64>,
    /// Commitments to the judge's secret seeds.
    pub seeds: Vec<SeedCommitment>,
    /// Everything else that was resolved from arguments and defaults.
    #[serde(default)]
    pub options: Value,
}

/// Limits of a run; absent means unlimited, zero means none allowed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BudgetLimits {
    /// Wall time in seconds.
    pub wall_s: Option<f64>,
    /// Full scorings.
    pub candidates: Option<u64>,
    /// Money in US dollars.
    pub cost_usd: Option<f64>,
    /// Model tokens.
    pub tokens: Option<u64>,
    /// Device time in seconds.
    pub device_s: Option<f64>,
}

/// The task audit: cheats that must fail, the baseline that must pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Audited {
    /// Whether the task may be run.
    pub passed: bool,
    /// Refusals and warnings, one sentence each.
    pub findings: Vec<String>,
    /// The full audit as JSON.
    #[serde(default)]
    pub detail: Value,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// The draft, as written, with what its gate found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Draft {
    /// The text of `draft.md`.
    pub text: BlobRef,
    /// Whether the gate passed it.
    pub accepted: bool,
    /// What the gate found, one sentence each.
    pub findings: Vec<String>,
}

/// The plan, as written, with what its gate found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// The text of `plan.md`.
    pub text: BlobRef,
    /// Whether the gate passed it.
    pub accepted: bool,
    /// What the gate found, one sentence each.
    pub findings: Vec<String>,
    /// The steps in order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan with the evidence that ends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanStep {
    /// What is to be tried.
    pub step: String,
    /// What must be seen to keep, revise or drop it.
    pub criterion: String,
    /// Check of the record by which the step is done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub passes: String,
    /// Check of the record by which the step is given up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fails: String,
}

/// A seed committed to after the run was opened (one per confirmation).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Committed {
    /// The commitment.
    pub seed: SeedCommitment,
}

/// An interrupted run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Resumed {
    /// Version of the tool that goes on.
    pub tool: String,
    /// Hash of the last record found.
    pub head: Digest,
    /// The step that was in flight and is done again, if known.
    #[serde(default)]
    pub redo: Option<String>,
}

/// A run stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interrupted {
    /// Why, in a few words (`interrupt`, `torn last line`, …).
    pub reason: String,
    /// The half-written line that was set aside, if there was one.
    #[serde(default)]
    pub torn: Option<Torn>,
}

/// A half-written last line, set aside as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Torn {
    /// Byte offset at which it began.
    pub offset: u64,
    /// The bytes.
    pub line: BlobRef,
}

/// Budget spent since the run began, resumes included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BudgetSpent {
    /// Wall time in seconds.
    pub wall_s: f64,
    /// Full scorings.
    pub candidates: u64,
    /// Screened configurations.
    pub screened: u64,
    /// Money in US dollars.
    #[serde(default)]
    pub cost_usd: f64,
    /// Model tokens.
    #[serde(default)]
    pub tokens: u64,
    /// Device time in seconds.
    #[serde(default)]
    pub device_s: f64,
    /// The limit that is used up, if one is.
    #[serde(default)]
    pub exhausted: Option<String>,
}

/// A remark of the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// Facts that go with it.
    #[serde(default)]
    pub data: Value,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The champion meets the goal, confirmed.
    GoalMet,
    /// The run ended without a confirmed candidate that meets the goal.
    GoalNotMet,
    /// The user or a signal ended the run for good.
    Interrupted,
}

impl Outcome {
    /// The name that stands in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::GoalMet => "goal-met",
            Self::GoalNotMet => "goal-not-met",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The last record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Closed {
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended (`budget: wall`, `plateau`, `goal`, …).
    pub reason: String,
    /// Id of the champion; absent when the baseline stands.
    pub champion: Option<String>,
    /// Full scorings.
    pub candidates: u64,
    /// Screened configurations.
    pub screened: u64,
    /// Wall time in seconds, resumes included.
    pub wall_s: f64,
    /// Number of records before this one.
    pub records: u64,
    /// Hash of the record before this one.
    pub head: Digest,
    /// Every seed that was committed to.
    pub seeds: Vec<RevealedSeed>,
    /// Candidates whose scoring ended without a statement: the machine was too busy or too noisy, or the time was up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unstated: u64,
    /// Full scorings that came to no measurement: a gate before it failed, or nothing could be measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmeasured: u64,
}

/// Counts that are zero in most runs are left out, so that earlier files keep their spelling.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
