//! Bodies about calls to agents, models and tools. Texts go to the object store: they are long and not ours.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// A call is about to be sent to a model. Without a [`ModelCall`] of the same id it was sent and never answered, and
/// counts at its bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModelSent {
    /// The call's id within the run, such as `m0007`.
    pub call: String,
    /// Who calls (`writer`, `reviewer`, …).
    pub role: String,
    /// The wire format (`chat`, `responses`, `messages`).
    pub wire: String,
    /// The model that is asked.
    pub model: String,
    /// The model that the client named; another one was pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_model: Option<String>,
    /// What was changed in the request besides the model, in a few words each.
    #[serde(default)]
    pub changed: Vec<String>,
    /// What a recorded answer is found by.
    pub key: Digest,
    /// The request as sent, without secrets.
    pub request: BlobRef,
    /// The most tokens that it can use.
    pub bound_tokens: u64,
    /// The most that it can cost, in US dollars.
    pub bound_usd: f64,
}

/// A model was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModelCall {
    /// Provider and model.
    pub model: String,
    /// Tokens read, cached ones included.
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
    /// The part of it that the gateway took for itself.
    #[serde(default)]
    pub own_ms: f64,
    /// The call's id within the run; empty in records that have no [`ModelSent`].
    #[serde(default)]
    pub call: String,
    /// Who called.
    #[serde(default)]
    pub role: String,
    /// The wire format.
    #[serde(default)]
    pub wire: String,
    /// What a recorded answer is found by.
    #[serde(default)]
    pub key: Option<Digest>,
    /// Tokens written to the provider's cache.
    #[serde(default)]
    pub tokens_cache_write: u64,
    /// The part of the output that was reasoning, where the provider says so.
    #[serde(default)]
    pub tokens_reasoning: u64,
    /// What it used, in the provider's words; null where it did not say.
    #[serde(default)]
    pub usage: Value,
    /// Whether tokens and cost are upper bounds, because nobody told.
    #[serde(default)]
    pub estimated: bool,
    /// What it was priced by.
    #[serde(default)]
    pub priced_by: String,
    /// Status of the answer; absent where none came.
    #[serde(default)]
    pub status: Option<u16>,
    /// Content type of the answer.
    #[serde(default)]
    pub content_type: String,
    /// Whether the answer came to its end.
    #[serde(default)]
    pub whole: bool,
    /// The model that the answer names.
    #[serde(default)]
    pub answered_model: Option<String>,
    /// The words of what went wrong, if something did.
    #[serde(default)]
    pub error: Option<String>,
    /// The earlier call whose recorded answer was served instead of asking again.
    #[serde(default)]
    pub served_from: Option<String>,
    /// Secrets that were taken out of request and response.
    #[serde(default)]
    pub redactions: u64,
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
