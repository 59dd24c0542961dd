//! What a run with agents is given: what the user asked for, and what of the machine they may use.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use ksmith_agents::gateway::Endpoint;
use ksmith_agents::writers::{Approver, Deny};
use serde::{Deserialize, Serialize};

/// What the user asked for; stands in the first record, so that a resumed run asks for the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct AgentOptions {
    /// The model that agents are pinned to.
    pub model: Option<String>,
    /// Its server, if it is not the usual one.
    pub endpoint: Endpoint,
    /// A price table of the user's own.
    pub prices: Option<PathBuf>,
    /// Turns of one session.
    pub turns: u32,
    /// Wall time of one session in seconds.
    pub session_s: f64,
    /// What happens to requests that leave the policy.
    pub approve: Approve,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            model: None,
            endpoint: Endpoint::default(),
            prices: None,
            turns: 60,
            session_s: 900.0,
            approve: Approve::Deny,
        }
    }
}

/// What happens to requests that leave the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// They are denied.
    #[default]
    Deny,
    /// They are shown as a difference in the terminal, and a person answers; without a terminal they are denied.
    Ask,
}

impl fmt::Display for Approve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
        })
    }
}

impl FromStr for Approve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "deny" => Ok(Self::Deny),
            "ask" => Ok(Self::Ask),
            _ => Err(format!("`{text}` is no way to approve; expected `deny` or `ask`")),
        }
    }
}

/// Reads an environment variable.
pub type Variable = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What of the machine agents may use; whoever starts a run reads it from its environment.
#[derive(Clone)]
pub struct AgentHost {
    /// Where programs are looked for (`PATH`).
    pub search_path: Option<OsString>,
    /// This program, which stands in an agent's box as the client of our tools; absent in tests that are none.
    pub ksmith: Option<PathBuf>,
    /// Reads one environment variable: the only way to a key.
    pub variable: Arc<Variable>,
    /// Answers requests that leave the policy.
    pub approver: Arc<dyn Approver>,
}

impl Default for AgentHost {
    fn default() -> Self {
        Self {
            search_path: None,
            ksmith: None,
            variable: Arc::new(|_| None),
            approver: Arc::new(Deny),
        }
    }
}

impl fmt::Debug for AgentHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHost")
            .field("search_path", &self.search_path)
            .field("ksmith", &self.ksmith)
            .finish_non_exhaustive()
    }
}
