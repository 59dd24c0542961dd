//! What the server says, and when.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Asked, Wire};

/// A list of turns; the first whose conditions hold, and which is not used up, answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The turns in order.
    #[serde(default, rename = "turn")]
    pub turns: Vec<Turn>,
}

/// One answer and the requests that it fits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Turn {
    /// Conditions; all of them must hold.
    #[serde(default)]
    pub when: When,
    /// Text of the answer.
    #[serde(default)]
    pub text: Option<String>,
    /// Names whose values the text copies: `{nonce}` becomes what the request says in a line `"nonce": "…"`.
    #[serde(default)]
    pub copies: Vec<String>,
    /// Tools that the answer calls.
    #[serde(default)]
    pub calls: Vec<Action>,
    /// Tokens that the answer says it used.
    #[serde(default)]
    pub usage: Usage,
    /// What goes wrong instead, or meanwhile.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// How often the turn may answer; absent means always.
    #[serde(default)]
    pub times: Option<u32>,
    /// Milliseconds before the answer begins.
    #[serde(default)]
    pub delay_ms: u64,
}

/// Conditions on a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct When {
    /// Number of tool results in the conversation.
    #[serde(default)]
    pub results: Option<usize>,
    /// Texts that must occur somewhere in the conversation.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Texts that must not occur anywhere in the conversation.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// A text that must occur in the last message or tool result.
    #[serde(default)]
    pub last_contains: Option<String>,
    /// Whether the request must, or must not, offer tools.
    #[serde(default)]
    pub tools: Option<bool>,
    /// The wire format.
    #[serde(default)]
    pub wire: Option<Wire>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// A command for whatever shell tool the request offers, in the shape that its schema asks for.
    Shell(String),
    /// A tool by its name, or by the end of its name (`test` finds `mcp__ksmith__test`).
    Call {
        /// The name.
        name: String,
        /// The arguments, an object.
        arguments: Value,
    },
}

/// Tokens that an answer says it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    pub input: u64,
    /// Input read from a cache.
    pub cached: u64,
    /// Input written to a cache (in the messages format only; elsewhere it counts as input).
    pub cache_write: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 100,
            cached: 0,
            cache_write: 0,
            output: 20,
            reasoning: 0,
        }
    }
}

/// How the server misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// An error with this status, in the format's own shape.
    Status(u16),
    /// The connection closes without a word.
    Drop,
    /// The answer breaks off after this many events (streamed), or within its body.
    DropAfter(usize),
    /// Status 200 and bytes that are no answer.
    Garbage,
    /// Bytes that are not HTTP.
    NotHttp,
    /// A whole answer that does not say what it used.
    NoUsage,
    /// Nothing for this many milliseconds, then the connection closes.
    Hang(u64),
}

impl Script {
    /// A script of these turns.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            turns: turns.into_iter().collect(),
        }
    }

    /// Reads a script written as TOML: a list of `[[turn]]`.
    ///
    /// # Errors
    /// When it has another shape, with the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

impl Action {
    /// A shell command.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::Shell(command.into())
    }

    /// A call of a tool by name.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::Call {
            name: name.into(),
            arguments,
        }
    }
}

impl Turn {
    /// A turn that says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// A turn that calls tools.
    pub fn calls(calls: impl IntoIterator<Item = Action>) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A turn that goes wrong.
    pub fn fault(fault: Fault) -> Self {
        Self {
            text: Some("cut off".into()),
            fault: Some(fault),
            ..Self::default()
        }
    }

    /// Copying these values of the request into its text.
    pub fn copying<const N: usize>(self, names: [&str; N]) -> Self {
        Self {
            copies: names.map(str::to_owned).into(),
            ..self
        }
    }

    /// With conditions instead of those so far.
    pub fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// For conversations that hold this many tool results.
    pub fn after_results(mut self, results: usize) -> Self {
        self.when.results = Some(results);
        self
    }

    /// For conversations in which this text occurs.
    pub fn if_contains(mut self, text: impl Into<String>) -> Self {
        self.when.contains.push(text.into());
        self
    }

    /// Saying that it used these tokens.
    pub fn using(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    /// At most this often.
    pub fn times(self, times: u32) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }
}

impl When {
    /// Whether a request meets all conditions.
    pub fn holds(&self, asked: &Asked) -> bool {
        self.results.is_none_or(|results| results == asked.results)
            && self.contains.iter().all(|text| asked.text.contains(text))
            && !self.lacks.iter().any(|text| asked.text.contains(text))
            && self
                .last_contains
                .as_ref()
                .is_none_or(|text| asked.last.contains(text))
            && self.tools.is_none_or(|tools| tools != asked.tools.is_empty())
            && self.wire.is_none_or(|wire| wire == asked.wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_from_toml() {
        let script = Script::parse(
            r#"
            [[turn]]
            when = { results = 0, contains = ["softmax"], tools = true }
            calls = [{ shell = "ls" }, { call = { name = "test", arguments = { candidate = "." } } }]
            usage = { input = 7, output = 3 }

            [[turn]]
            fault = { status = 429 }
            times = 2

            [[turn]]
            text = "Done."
            fault = "no-usage"
            "#,
        )
        .unwrap();
        assert_eq!(
            script.turns[0].calls,
            [
                Action::shell("ls"),
                Action::call("test", serde_json::json!({"candidate": "."}))
            ]
        );
        assert_eq!(
            (script.turns[0].usage.input, script.turns[0].usage.cached),
            (7, 0)
        );
        assert_eq!(script.turns[1].fault, Some(Fault::Status(429)));
        assert_eq!(script.turns[2].fault, Some(Fault::NoUsage));
        assert!(Script::parse("[[turn]]\ntexts = 1").is_err());
    }
}
