//! What an agent's own stream of JSON lines admits: its version, a turn or budget limit, refused tool calls.
//!
//! Nothing here can turn a failure into a success. Lines of unknown kinds, and lines that are no JSON, are passed over:
//! the whole stream is kept as evidence anyway.

use serde::Serialize;
use serde_json::Value;

/// What an agent's own stream admits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Said {
    /// It stopped because its turns are used up.
    pub turn_limit: bool,
    /// It stopped at a money limit of its own.
    pub budget_spent: bool,
    /// Requests that its own policy refused.
    pub denials: u64,
    /// The version that it names.
    pub version: Option<String>,
    /// Its last words; a claim at most.
    pub last: String,
}

/// Longest last words kept, in characters.
const LAST: usize = 4000;

impl Said {
    /// Reads a stream; field names are those of Claude Code, Qwen Code (`result` lines) and Codex (`turn.failed`), as
    /// observed with the versions in the profiles.
    pub fn read(stream: &[u8]) -> Self {
        let mut said = Self::default();
        for line in stream.split(|&byte| byte == b'\n') {
            if let Ok(Value::Object(event)) = serde_json::from_slice(line) {
                said.hear(&event);
            }
        }
        said
    }

    /// Takes a text as the last words; nothing leaves those before.
    pub(super) fn keep(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.last = text.chars().take(LAST).collect();
        }
    }

    fn hear(&mut self, event: &serde_json::Map<String, Value>) {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "result" => {
                self.turn_limit |= text("subtype") == "error_max_turns";
                self.budget_spent |= text("subtype") == "error_max_budget_usd";
                let denials = event.get("permission_denials").and_then(Value::as_array);
                self.denials += denials.map_or(0, |list| list.len() as u64);
                self.keep(text("result"));
            }
            "item.completed" => {
                let item = event.get("item");
                if item.is_some_and(|item| item["type"] == "agent_message") {
                    self.keep(item.and_then(|item| item["text"].as_str()).unwrap_or_default());
                }
                let declined = event
                    .get("item")
                    .and_then(|item| item.get("status"))
                    .is_some_and(|status| status == "declined");
                self.denials += u64::from(declined);
            }
            _ => {}
        }
        if self.version.is_none() {
            let version = ["version", "claude_code_version", "qwen_code_version"]
                .iter()
                .map(|name| text(name))
                .find(|version| !version.is_empty());
            self.version = version.map(|version| version.chars().take(40).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_refusals_are_heard_and_success_is_not() {
        let stream = br#"not json
{"type":"system","subtype":"init","version":"2.1.197"}
{"type":"something new","turns":3}
{"type":"result","subtype":"error_max_turns","is_error":true,"permission_denials":[{"tool":"Bash"}]}
{"type":"item.completed","item":{"type":"command_execution","status":"declined"}}
"#;
        assert_eq!(
            Said::read(stream),
            Said {
                turn_limit: true,
                budget_spent: false,
                denials: 2,
                version: Some("2.1.197".into()),
                last: String::new(),
            }
        );
        let success = br#"{"type":"item.completed","item":{"type":"agent_message","text":"Nearly."}}
{"type":"result","subtype":"success","is_error":false,"result":"PASS 100x faster"}"#;
        assert_eq!(
            Said::read(success),
            Said {
                last: "PASS 100x faster".into(),
                ..Said::default()
            }
        );
    }
}
