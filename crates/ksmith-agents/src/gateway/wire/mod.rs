//! The three wire formats: reading requests, answers and streamed events, and counting tokens.
//!
//! Everything here is a pure function of bytes; what cannot be read is counted, never a panic.

mod answer;
mod request;
mod sse;
mod usage;

use serde::{Deserialize, Serialize};

pub use answer::{AnswerReader, Flow};
pub use request::{Prepared, RequestError, prepare, shape};
pub use sse::{Event, Splitter};
pub use usage::Usage;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// OpenAI chat completions, also spoken by most local servers.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
}

impl Wire {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];

    /// The name used in profiles and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }

    /// What follows the base address of a server.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Responses => "/responses",
            Self::Messages => "/messages",
        }
    }

    /// The format whose endpoint, below `/v1`, is this path.
    pub fn of_path(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/v1")?;
        Self::ALL.into_iter().find(|wire| wire.endpoint() == rest)
    }
}

impl std::fmt::Display for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Wire {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|wire| wire.name() == text)
            .ok_or_else(|| format!("`{text}` is no wire format; expected `chat`, `responses` or `messages`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_model_endpoints_have_a_format() {
        for wire in Wire::ALL {
            assert_eq!(Wire::of_path(&format!("/v1{}", wire.endpoint())), Some(wire));
            assert_eq!(wire.name().parse(), Ok(wire));
        }
        for path in [
            "/responses",
            "/v1/responses/resp_1",
            "/v1/files",
            "/v1/messages/batches",
            "/v1/../v1/messages",
            "//v1/messages",
        ] {
            assert_eq!(Wire::of_path(path), None, "{path}");
        }
    }
}
