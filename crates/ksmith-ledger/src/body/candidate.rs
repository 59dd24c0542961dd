//! Bodies about one candidate.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobRef, Decision, Gate, GateResult, TreeRef, Verdict};

/// What part a candidate plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A writer's proposal.
    #[default]
    Candidate,
    /// The baseline's source under one of the flag sets.
    FlagControl,
    /// Another implementation that enters the search.
    Seed,
    /// The baseline itself.
    Baseline,
}

impl Role {
    /// The name that stands in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::FlagControl => "flag-control",
            Self::Seed => "seed",
            Self::Baseline => "baseline",
        }
    }
}

/// A candidate was proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Proposed {
    /// Id within the run, such as `c0007`.
    pub candidate: String,
    /// What part it plays.
    #[serde(default)]
    pub role: Role,
    /// Round, from 1.
    pub round: u32,
    /// Ids of the candidates it was made from; empty means the baseline.
    pub parents: Vec<String>,
    /// Who wrote it.
    pub writer: String,
    /// Design family, such as `online-softmax`.
    pub family: String,
    /// Direction of the plan that it follows.
    pub direction: String,
    /// One sentence: what is believed and why.
    pub hypothesis: String,
    /// Predicted ratio over the champion.
    pub predicted: Option<f64>,
    /// Its files.
    pub tree: TreeRef,
    /// The candidate's digest, as it stands in verdicts.
    pub digest: Digest,
    /// Lore entries and other sources consulted.
    #[serde(default)]
    pub consulted: Vec<String>,
    /// What the writer needs to go on after a resume, or says beyond the above.
    #[serde(default)]
    pub detail: Value,
}

/// One configuration of a search went through screening.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Screened {
    /// The candidate's id, if it has one.
    #[serde(default)]
    pub candidate: Option<String>,
    /// The candidate's digest.
    pub digest: Digest,
    /// The configuration in a few words.
    pub configuration: String,
    /// Whether it went on to a full scoring.
    pub kept: bool,
    /// Stable `gate/cause` string where it left.
    #[serde(default)]
    pub code: Option<String>,
    /// Rough ratio over the champion; never a claim.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// The rounds have ended, and the best of the quick pass that were not scored ran once more, beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Shortlisted {
    /// Why the rounds ended.
    pub stop: String,
    /// The champion they ran beside; absent means the baseline.
    #[serde(default)]
    pub champion: Option<String>,
    /// How often each ran; zero where nothing could be measured.
    pub rounds: u32,
    /// Each of them, in the order of the quick pass.
    pub entries: Vec<ShortlistEntry>,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// One candidate of a shortlist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShortlistEntry {
    /// The candidate.
    pub candidate: String,
    /// What the quick pass makes of it over the champion; never a claim.
    pub quick: f64,
    /// Median ratio over the champion; never a claim.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// Stable `gate/cause` string where it failed.
    #[serde(default)]
    pub code: Option<String>,
}

/// A candidate was compiled and analysed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    /// The candidate.
    pub candidate: String,
    /// Gates of this step, in order.
    pub gates: Vec<GateResult>,
    /// Stable `gate/cause` string of the failure, if one failed.
    pub code: Option<String>,
    /// The compiler's command.
    #[serde(default)]
    pub command: Vec<String>,
    /// What the compiler said.
    #[serde(default)]
    pub log: Option<BlobRef>,
    /// Disassembly as text.
    #[serde(default)]
    pub disassembly: Option<BlobRef>,
    /// What the analysis found, one sentence each.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// A candidate was tested for correctness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tested {
    /// The candidate.
    pub candidate: String,
    /// Gates of this step, in order.
    pub gates: Vec<GateResult>,
    /// Stable `gate/cause` string of the failure, if one failed.
    pub code: Option<String>,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// A candidate was profiled, or could not be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Profiled {
    /// The candidate.
    pub candidate: String,
    /// The tool, such as `perf` or `ncu`.
    pub tool: String,
    /// Why there is no profile; absent when there is one.
    #[serde(default)]
    pub unavailable: Option<String>,
    /// What was read from it, one sentence each.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The tool's report.
    #[serde(default)]
    pub report: Option<BlobRef>,
    /// Figures.
    #[serde(default)]
    pub figures: Value,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// The judge decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decided {
    /// The candidate.
    pub candidate: String,
    /// The verdict, whole.
    pub verdict: Verdict,
    /// Hash of the verdict ([`Verdict::digest`]).
    pub verdict_digest: Digest,
    /// The champion it was measured against; absent means the baseline.
    pub champion: Option<String>,
    /// One sentence: why it is kept or dropped.
    pub reason: String,
}

impl Decided {
    /// Shorthand for the parts shown in tables.
    pub fn decision(&self) -> (Decision, &str, Option<Gate>) {
        (self.verdict.verdict, &self.verdict.code, self.verdict.gate)
    }
}

/// The judge repeated a decision with new secrets, processes and order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Confirmed {
    /// The candidate.
    pub candidate: String,
    /// The verdict of the confirmation, whole.
    pub verdict: Verdict,
    /// Hash of the verdict ([`Verdict::digest`]).
    pub verdict_digest: Digest,
    /// Number of this confirmation within the run, from 1.
    pub attempt: u32,
    /// The error rate it was allowed.
    pub alpha: f64,
    /// One sentence.
    #[serde(default)]
    pub reason: String,
}

/// A champion fell: its last confirmation spoke against it, or did not repeat its gain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Demoted {
    /// The candidate that was champion.
    pub candidate: String,
    /// Who is champion again; absent means that the baseline stands.
    #[serde(default)]
    pub champion: Option<String>,
    /// Hash of the confirming verdict that refused it.
    pub verdict_digest: Digest,
    /// One sentence.
    pub reason: String,
}

/// A candidate became champion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Promoted {
    /// The candidate.
    pub candidate: String,
    /// The champion before; absent means the baseline.
    pub previous: Option<String>,
    /// Hash of the confirming verdict.
    pub verdict_digest: Digest,
    /// The candidate's files.
    pub tree: TreeRef,
}
