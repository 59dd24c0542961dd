//! What a request asks, read from any of the three formats.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// OpenAI chat completions.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
}

impl Wire {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];

    /// The path of its endpoint below the base address.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
        }
    }
}

/// A tool that a request offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The group that it stands in, where the format has groups.
    pub namespace: Option<String>,
    /// The schema of its arguments.
    pub schema: Value,
}

/// What a request asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Its format.
    pub wire: Wire,
    /// The model that it names.
    pub model: String,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether a streamed chat answer is to say what it used; always so in the other formats.
    pub wants_usage: bool,
    /// Every text of the conversation, system prompt included, a line each.
    pub text: String,
    /// The texts of the last message or tool result.
    pub last: String,
    /// Number of tool results in the conversation.
    pub results: usize,
    /// The tools on offer.
    pub tools: Vec<Tool>,
}

impl Asked {
    /// Reads a request's body.
    pub fn read(wire: Wire, body: &Value) -> Self {
        let list = match wire {
            Wire::Chat | Wire::Messages => &body["messages"],
            Wire::Responses => &body["input"],
        };
        let mut texts = Vec::new();
        for part in [&body["system"], &body["instructions"], list] {
            collect(part, &mut texts);
        }
        let mut last = Vec::new();
        collect(
            list.as_array().and_then(|items| items.last()).unwrap_or(list),
            &mut last,
        );
        let stream = body["stream"].as_bool().unwrap_or(false);
        Self {
            wire,
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            stream,
            wants_usage: match wire {
                Wire::Chat => !stream || body["stream_options"]["include_usage"] == true,
                Wire::Responses | Wire::Messages => true,
            },
            text: texts.join("\n"),
            last: last.join("\n"),
            results: results(wire, list),
            tools: tools(wire, &body["tools"]),
        }
    }

    /// The value that the conversation states in a line `"name": "value"`; the first of several.
    pub fn value(&self, name: &str) -> Option<&str> {
        let start = format!("\"{name}\": \"");
        self.text
            .lines()
            .find_map(|line| line.strip_prefix(&start)?.split('"').next())
    }

    /// The tool of that name, else one whose name ends with it after `__`.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let ends = |tool: &&Tool| tool.name.rsplit_once("__").is_some_and(|(_, end)| end == name);
        let exact = self.tools.iter().find(|tool| tool.name == name);
        exact.or_else(|| self.tools.iter().find(ends))
    }

    /// The shell tool and the arguments with which it runs `command`.
    pub fn shell(&self, command: &str) -> Option<(&Tool, Value)> {
        const NAMES: [&str; 7] = [
            "exec_command",
            "shell_command",
            "shell",
            "run_shell_command",
            "bash",
            "Bash",
            "run",
        ];
        let tool = NAMES
            .iter()
            .find_map(|name| self.tools.iter().find(|tool| tool.name == *name))?;
        let empty = serde_json::Map::new();
        let properties = tool.schema["properties"].as_object().unwrap_or(&empty);
        let mut arguments = serde_json::Map::new();
        for (name, schema) in properties {
            let kind = schema["type"].as_str().unwrap_or("string");
            let is_required = || {
                tool.schema["required"]
                    .as_array()
                    .is_some_and(|required| required.iter().any(|found| found == name))
            };
            let value = match (name.as_str(), kind) {
                ("cmd" | "command", "array") => serde_json::json!(["bash", "-lc", command]),
                ("cmd" | "command", _) => Value::from(command),
                // Long enough for what a script asks of a shell; the tools bound it themselves.
                ("timeout" | "timeout_ms" | "yield_time_ms", "number" | "integer") => Value::from(120_000),
                (_, "boolean") if is_required() => Value::from(false),
                (_, "number" | "integer") if is_required() => Value::from(10_000),
                (_, "string") if is_required() => Value::from("a step of the script"),
                _ => continue,
            };
            arguments.insert(name.clone(), value);
        }
        Some((tool, Value::Object(arguments)))
    }
}

/// Every string below `value`, in order.
fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn results(wire: Wire, list: &Value) -> usize {
    let empty = Vec::new();
    let items = list.as_array().unwrap_or(&empty);
    match wire {
        Wire::Chat => items.iter().filter(|item| item["role"] == "tool").count(),
        Wire::Responses => items
            .iter()
            .filter(|item| {
                item["type"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("_output"))
            })
            .count(),
        Wire::Messages => items
            .iter()
            .filter_map(|item| item["content"].as_array())
            .flatten()
            .filter(|part| part["type"] == "tool_result")
            .count(),
    }
}

fn tools(wire: Wire, list: &Value) -> Vec<Tool> {
    let mut found = Vec::new();
    for entry in list.as_array().into_iter().flatten() {
        let (at, schema) = match wire {
            Wire::Chat => (&entry["function"], "parameters"),
            Wire::Responses => (entry, "parameters"),
            Wire::Messages => (entry, "input_schema"),
        };
        let Some(name) = at["name"].as_str() else { continue };
        let inner = entry["tools"]
            .as_array()
            .or_else(|| entry["functions"].as_array());
        match inner {
            Some(inner) => found.extend(inner.iter().filter_map(|tool| {
                Some(Tool {
                    name: tool["name"].as_str()?.to_owned(),
                    namespace: Some(name.to_owned()),
                    schema: tool["parameters"].clone(),
                })
            })),
            None => found.push(Tool {
                name: name.to_owned(),
                namespace: None,
                schema: at[schema].clone(),
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_format_tells_its_results_and_tools() {
        let chat = json!({"model": "m", "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "bash", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "out"}],
            "tools": [{"type": "function", "function": {"name": "run_shell_command", "parameters": {
                "properties": {"command": {"type": "string"}, "is_background": {"type": "boolean"}},
                "required": ["command", "is_background"]}}}]});
        let asked = Asked::read(Wire::Chat, &chat);
        assert_eq!((asked.results, asked.stream), (1, false));
        assert!(asked.text.contains("be brief") && asked.last.contains("out"));
        let (tool, arguments) = asked.shell("ls").unwrap();
        assert_eq!(tool.name, "run_shell_command");
        assert_eq!(arguments, json!({"command": "ls", "is_background": false}));

        let responses = json!({"input": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "go"}]}, {"type": "function_call_output", "output": "out"}],
            "tools": [{"type": "namespace", "name": "mcp__kern", "tools": [{"name": "test", "parameters": {}}]},
                {"type": "function", "name": "shell", "parameters": {"properties": {"command": {"type": "array"}}}}]});
        let asked = Asked::read(Wire::Responses, &responses);
        assert_eq!(asked.results, 1);
        assert_eq!(
            asked.tool("test").unwrap().namespace.as_deref(),
            Some("mcp__kern")
        );
        assert_eq!(
            asked.shell("ls").unwrap().1,
            json!({"command": ["bash", "-lc", "ls"]})
        );

        let copied =
            json!({"messages": [{"role": "user", "content": "go\n\"nonce\": \"ab12\"\n| \"task\": \"x\""}]});
        let asked = Asked::read(Wire::Chat, &copied);
        assert_eq!((asked.value("nonce"), asked.value("task")), (Some("ab12"), None));

        let messages = json!({"system": "s", "messages": [{"role": "user", "content": "go"},
            {"role": "user", "content": [{"type": "tool_result", "content": "a"},
                {"type": "tool_result", "content": "b"}, {"type": "text", "text": "reminder"}]}],
            "tools": [{"name": "mcp__ksmith__test", "input_schema": {}}]});
        let asked = Asked::read(Wire::Messages, &messages);
        assert_eq!(asked.results, 2);
        assert_eq!(asked.tool("test").unwrap().name, "mcp__ksmith__test");
        assert!(asked.shell("ls").is_none());
    }
}
