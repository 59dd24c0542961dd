//! The verbs, and the trait by which whoever holds the probes offers them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Envelope;

/// What an agent may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// The contract in short, and what is left to spend.
    Task,
    /// What is known: structures and lessons that fit a query.
    Know,
    /// Load the candidate, check the policy, compile it.
    Check,
    /// Run it on the dev cases.
    Test,
    /// Time it beside champion and baseline on the dev workloads.
    Bench,
    /// Read its machine code.
    Profile,
    /// Differences from the champion, or from the candidate at the start.
    Diff,
    /// Hand the candidate in as it is now.
    Submit,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 8] = [
        Self::Task,
        Self::Know,
        Self::Check,
        Self::Test,
        Self::Bench,
        Self::Profile,
        Self::Diff,
        Self::Submit,
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Know => "know",
            Self::Check => "check",
            Self::Test => "test",
            Self::Bench => "bench",
            Self::Profile => "profile",
            Self::Diff => "diff",
            Self::Submit => "submit",
        }
    }

    /// What it does, for an agent; one or two sentences.
    pub fn help(self) -> &'static str {
        match self {
            Self::Task => "Say what the task asks for, how it is called, and what is left to spend.",
            Self::Know => "Search what is known about kernels of this family. Argument: query, a few words.",
            Self::Check => "Load the candidate, check it against the policy and compile it. Nothing is run.",
            Self::Test => {
                "Run the candidate on the visible cases and say where it differs from the reference."
            }
            Self::Bench => {
                "Time the candidate beside champion and baseline on the visible workloads. Rough; never a claim."
            }
            Self::Profile => "Compile the candidate and say what its machine code gives away.",
            Self::Diff => "Show how the candidate differs from the champion.",
            Self::Submit => {
                "Hand the candidate in as it is now; it is judged after the session. Fill in proposal.toml first."
            }
        }
    }

    /// Whether it can take longer than a moment: then it runs alone and may answer with a ticket.
    pub fn is_long(self) -> bool {
        match self {
            Self::Check | Self::Test | Self::Bench | Self::Profile => true,
            Self::Task | Self::Know | Self::Diff | Self::Submit => false,
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|verb| verb.name() == text)
            .ok_or_else(|| {
                let known: Vec<&str> = Self::ALL.iter().map(|verb| verb.name()).collect();
                format!("`{text}` is no verb; expected one of {}", known.join(", "))
            })
    }
}

/// Whoever holds the probes.
pub trait Verbs: Send + Sync {
    /// Does one verb on the candidate as it lies on the desk. A wrong request is an envelope too, never a panic.
    fn call(&self, verb: Verb, arguments: &Value) -> Envelope;
}
