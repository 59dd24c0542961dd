//! `doctor --safety`: the five measures against an agent that does harm.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::IsolationFacts;
use crate::host::Host;

/// Whether a measure holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureState {
    /// It holds.
    Ok,
    /// It does not hold.
    NotOk,
}

/// One measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// A stable name.
    pub name: String,
    /// What it asks for.
    pub asks: String,
    /// Whether it holds.
    pub state: MeasureState,
    /// Why, with file and line where something was found. Never a key.
    pub reason: String,
    /// What to do where it does not hold.
    pub fix: Option<String>,
}

/// What is configured about agents; filled in by whoever holds the agent profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFacts {
    /// Whether agents are started in the box without the home folder.
    pub boxed_without_home: bool,
    /// Whether agents have no network by default but the model gateway.
    pub network_denied: bool,
    /// Whether dangerous commands are denied by default.
    pub dangerous_denied: bool,
    /// Whether changes of tests and benchmarks by an agent are shown.
    pub protected_diffs_shown: bool,
    /// Command lines of the configured agents, by profile name.
    pub command_lines: Vec<(String, Vec<String>)>,
}

/// What the safety check may use.
#[derive(Clone)]
pub struct SafetyProbes<'a> {
    /// The machine to ask.
    pub host: &'a dyn Host,
    /// What the sandbox said of itself.
    pub isolation: IsolationFacts,
    /// What is configured about agents.
    pub agents: AgentFacts,
    /// The folder that is worked in.
    pub folder: PathBuf,
}

/// Checks the five measures.
pub fn safety(_probes: &SafetyProbes<'_>) -> Vec<Measure> {
    Vec::new()
}
