//! Bodies about calls to agents, models and tools. Texts go to the object store: they are long and not ours.

use serde::{Deserialize, Serialize};

use crate::BlobRef;

/// An agent program was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentCall {
    /// The agent and its version.
    pub agent: String,
    /// What it was asked for (`draft`, `propose`, `review`, …).
    pub purpose: String,
    /// What it was told.
    pub prompt: BlobRef,
    /// What it said.
    #[serde(default)]
    pub answer: Option<BlobRef>,
    /// What it said on standard error, if anything.
    #[serde(default)]
    pub errors: Option<BlobRef>,
    /// How it ended, in a few words.
    pub ended: String,
    /// Facts that go with it: outcome, isolation, command line, files beside the candidate.
    #[serde(default)]
    pub detail: serde_json::Value,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// A model was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModelCall {
    /// Provider and model.
    pub model: String,
    /// Tokens read.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Tokens read from the provider's cache.
    #[serde(default)]
    pub tokens_cached: u64,
    /// Cost in US dollars.
    pub cost_usd: f64,
    /// The request.
    #[serde(default)]
    pub request: Option<BlobRef>,
    /// The response.
    #[serde(default)]
    pub response: Option<BlobRef>,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// An agent called a tool of ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: BlobRef,
    /// Its answer.
    #[serde(default)]
    pub answer: Option<BlobRef>,
    /// Whether it was allowed.
    pub allowed: bool,
    /// Wall time in milliseconds.
    pub ms: f64,
}
