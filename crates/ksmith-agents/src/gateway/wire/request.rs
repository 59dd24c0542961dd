//! Prepares a request for the provider: pins the model and takes out what would act outside the box or change its
//! price.

use ksmith_task::Digest;
use serde_json::{Map, Value};

use super::Wire;

/// A request as it goes to the provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The body.
    pub body: Vec<u8>,
    /// The model that the client asked for.
    pub asked_model: String,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Most output tokens that the client allows.
    pub max_output: Option<u64>,
    /// What was changed, besides the model, in a few words each.
    pub changed: Vec<String>,
    /// What a recorded answer is found by: a hash of the body without what differs between two identical sessions.
    pub key: Digest,
    /// Its place in its conversation ([`shape`]).
    pub shape: Digest,
}

/// Why a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The body is no JSON object.
    #[error("the request is no JSON object")]
    NotAnObject,
    /// The answer would come outside this connection, unseen and uncounted.
    #[error("`background` requests are not let through: their answer could not be counted")]
    Background,
    /// The provider would fetch something from the network on the agent's behalf.
    #[error("`{0}` is not let through: content must be in the request, not at an address")]
    Remote(String),
}

/// Fields that change the price, or make the provider act or remember on the agent's behalf.
const DROPPED: [&str; 9] = [
    "service_tier",
    "speed",
    "mcp_servers",
    "container",
    "web_search_options",
    "plugins",
    "store",
    "fallbacks",
    "inference_geo",
];

/// Fields that differ between two sessions that are otherwise alike.
const VOLATILE: [&str; 6] = [
    "metadata",
    "client_metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "session_id",
];

/// Prepares a request body; `model` replaces whatever model it names.
///
/// # Errors
/// When it is none, or asks for what is not let through.
pub fn prepare(wire: Wire, bytes: &[u8], model: &str) -> Result<Prepared, RequestError> {
    let Ok(Value::Object(mut body)) = serde_json::from_slice(bytes) else {
        return Err(RequestError::NotAnObject);
    };
    if body
        .get("background")
        .is_some_and(|value| value != &Value::Bool(false))
    {
        return Err(RequestError::Background);
    }
    for part in ["system", "messages", "input"] {
        if let Some(found) = body.get(part).and_then(remote) {
            return Err(RequestError::Remote(found));
        }
    }
    let mut changed = Vec::new();
    for name in DROPPED {
        if body.remove(name).is_some() {
            changed.push(format!("dropped `{name}`"));
        }
    }
    changed.extend(drop_hosted_tools(wire, &mut body));
    let asked_model = body.insert("model".into(), model.into());
    let stream = body.get("stream") == Some(&Value::Bool(true));
    match wire {
        Wire::Chat if stream => {
            let options = body
                .entry("stream_options")
                .or_insert_with(|| Value::Object(Map::new()));
            if options["include_usage"] != true {
                *options = serde_json::json!({"include_usage": true});
                changed.push("asked for usage".to_owned());
            }
        }
        Wire::Responses => {
            body.insert("store".into(), false.into());
        }
        Wire::Chat | Wire::Messages => {}
    }
    let max_output = ["max_output_tokens", "max_completion_tokens", "max_tokens"]
        .iter()
        .find_map(|name| body.get(*name).and_then(Value::as_u64));
    let bytes = Value::Object(body.clone()).to_string().into_bytes();
    for name in VOLATILE {
        body.remove(name);
    }
    let body = Value::Object(body);
    let key = Digest::of_parts([
        ("wire", wire.name().as_bytes()),
        ("body", body.to_string().as_bytes()),
    ]);
    Ok(Prepared {
        body: bytes,
        asked_model: asked_model
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        stream,
        max_output,
        changed,
        key,
        shape: shape_of(wire, &body),
    })
}

/// A hash of a request's place in its conversation: who spoke in which turn, which tools were called and are on offer,
/// and nothing of what was said. Two sessions that go alike have the same shapes, also where they hold times and random
/// names. `None` for bytes that are no request.
pub fn shape(wire: Wire, request: &[u8]) -> Option<Digest> {
    let body = serde_json::from_slice::<Value>(request).ok()?;
    body.is_object().then(|| shape_of(wire, &body))
}

fn shape_of(wire: Wire, body: &Value) -> Digest {
    let mut text = wire.name().to_owned();
    let list = match wire {
        Wire::Chat | Wire::Messages => &body["messages"],
        Wire::Responses => &body["input"],
    };
    for item in list.as_array().into_iter().flatten() {
        text.push('\n');
        outline(item, &mut text);
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        text.push_str("\ntool");
        outline(tool, &mut text);
    }
    Digest::of(text.as_bytes())
}

/// Roles, types and names of an item and of its parts, in order.
fn outline(item: &Value, text: &mut String) {
    for name in ["role", "type", "name"] {
        if let Some(value) = item[name].as_str() {
            text.push(' ');
            text.push_str(value);
        }
    }
    for part in ["content", "tool_calls", "function"] {
        match &item[part] {
            Value::Array(parts) => parts.iter().for_each(|part| outline(part, text)),
            part @ Value::Object(_) => outline(part, text),
            _ => {}
        }
    }
}

/// Tools that the provider runs on its own machines: search, fetch, code execution, remote servers. The agent's box
/// has no network, and neither has its model. Unknown kinds are taken out, too.
fn drop_hosted_tools(wire: Wire, body: &mut Map<String, Value>) -> Vec<String> {
    let Some(Value::Array(tools)) = body.get_mut("tools") else {
        return Vec::new();
    };
    let mut dropped = Vec::new();
    tools.retain(|tool| {
        let keep = runs_at_client(wire, tool);
        if !keep {
            let kind = tool["type"].as_str().unwrap_or("?");
            dropped.push(format!("dropped tool `{kind:.60}`"));
        }
        keep
    });
    if tools.is_empty() {
        body.remove("tools");
        body.remove("tool_choice");
    }
    dropped
}

fn runs_at_client(wire: Wire, tool: &Value) -> bool {
    let kind = tool["type"].as_str();
    match wire {
        Wire::Chat => matches!(kind, Some("function" | "custom")),
        Wire::Responses => match kind {
            Some("function" | "custom" | "local_shell" | "apply_patch") => true,
            Some("shell") => tool["environment"]["type"] == "local",
            Some("namespace") => tool["tools"]
                .as_array()
                .is_none_or(|inner| inner.iter().all(|tool| runs_at_client(wire, tool))),
            Some(_) | None => false,
        },
        Wire::Messages => match kind {
            None | Some("custom") => true,
            Some(kind) => ["bash_", "text_editor_", "memory_", "computer_"]
                .iter()
                .any(|prefix| kind.starts_with(prefix)),
        },
    }
}

/// An address that the provider would fetch, if there is one below `value`.
fn remote(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => {
            for name in ["image_url", "file_url", "url"] {
                let text = match fields.get(name) {
                    Some(Value::Object(inner)) => inner.get("url").and_then(Value::as_str),
                    Some(value) => value.as_str(),
                    None => None,
                };
                // A bare `url` is an address only beside the type that says so: tools may have such an argument.
                let is_source = name != "url" || fields.get("type").is_some_and(|kind| kind == "url");
                if text.is_some_and(|text| is_source && !text.starts_with("data:")) {
                    return Some(name.to_owned());
                }
            }
            // Arguments of the model's own calls are echoed back; they are not fetched.
            let is_call = fields.get("type").is_some_and(|kind| kind == "tool_use");
            fields
                .iter()
                .filter(|(name, _)| !(is_call && *name == "input"))
                .find_map(|(_, field)| remote(field))
        }
        Value::Array(items) => items.iter().find_map(remote),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn prepared(wire: Wire, body: &Value) -> (Prepared, Value) {
        let prepared = prepare(wire, body.to_string().as_bytes(), "pinned").unwrap();
        let body = serde_json::from_slice(&prepared.body).unwrap();
        (prepared, body)
    }

    #[test]
    fn the_model_is_pinned_and_usage_is_asked_for() {
        let asked = json!({"model": "dear", "stream": true, "messages": [], "service_tier": "priority",
            "max_tokens": 7});
        let (prepared, body) = prepared(Wire::Chat, &asked);
        assert_eq!(
            body,
            json!({"model": "pinned", "stream": true, "messages": [], "max_tokens": 7,
                "stream_options": {"include_usage": true}})
        );
        assert_eq!(
            (
                prepared.asked_model.as_str(),
                prepared.stream,
                prepared.max_output
            ),
            ("dear", true, Some(7))
        );
        assert_eq!(prepared.changed, ["dropped `service_tier`", "asked for usage"]);
    }

    #[test]
    fn tools_that_the_provider_would_run_are_taken_out() {
        let cases = [
            (
                Wire::Responses,
                json!([{"type": "function", "name": "a"}, {"type": "web_search"}, {"type": "mcp", "server_url": "x"},
                    {"type": "code_interpreter"}, {"type": "local_shell"}, {"type": "shell"},
                    {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "b"}]},
                    {"type": "namespace", "name": "n", "tools": [{"type": "web_search"}]}, {"name": "untyped"}]),
                json!([{"type": "function", "name": "a"}, {"type": "local_shell"},
                    {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "b"}]}]),
            ),
            (
                Wire::Messages,
                json!([{"name": "a"}, {"type": "bash_20250124", "name": "bash"},
                    {"type": "web_fetch_20250910", "name": "web_fetch"}, {"type": "code_execution_20250825"}]),
                json!([{"name": "a"}, {"type": "bash_20250124", "name": "bash"}]),
            ),
        ];
        for (wire, tools, kept) in cases {
            let (_, body) = prepared(wire, &json!({"tools": tools, "messages": []}));
            assert_eq!(body["tools"], kept, "{wire}");
        }
        let (_, body) = prepared(
            Wire::Chat,
            &json!({"tools": [{"type": "search"}], "tool_choice": "auto"}),
        );
        assert_eq!(body, json!({"model": "pinned"}));
    }

    #[test]
    fn what_could_not_be_counted_or_would_be_fetched_is_refused() {
        let refused = |wire: Wire, body: Value| prepare(wire, body.to_string().as_bytes(), "m").unwrap_err();
        assert_eq!(
            refused(Wire::Responses, json!({"background": true})),
            RequestError::Background
        );
        assert_eq!(refused(Wire::Chat, json!([1])), RequestError::NotAnObject);
        for content in [
            json!([{"type": "image_url", "image_url": {"url": "https://example.org/?q=secret"}}]),
            json!([{"type": "input_file", "file_url": "http://example.org"}]),
            json!([{"type": "image", "source": {"type": "url", "url": "https://example.org"}}]),
        ] {
            let error = refused(
                Wire::Messages,
                json!({"messages": [{"role": "user", "content": content}]}),
            );
            assert!(matches!(error, RequestError::Remote(_)), "{error}");
        }
        let fine = json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "name": "get",
            "input": {"type": "url", "url": "https://example.org"}}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]});
        assert!(prepare(Wire::Messages, fine.to_string().as_bytes(), "m").is_ok());
    }

    #[test]
    fn the_key_ignores_what_differs_between_identical_sessions() {
        let key = |body: Value| prepared(Wire::Responses, &body).0.key;
        let same =
            key(json!({"input": "a", "prompt_cache_key": "1", "metadata": {"session": 1}, "model": "x"}));
        assert_eq!(
            same,
            key(json!({"model": "y", "input": "a", "prompt_cache_key": "2"}))
        );
        assert_ne!(same, key(json!({"input": "b"})));
    }

    #[test]
    fn the_shape_is_the_place_in_a_conversation() {
        let of = |wire, body: Value| shape(wire, body.to_string().as_bytes()).unwrap();
        let chat = |text: &str, more: Value| {
            let mut messages = vec![json!({"role": "user", "content": text})];
            messages.extend(more.as_array().cloned().unwrap_or_default());
            of(Wire::Chat, json!({"messages": messages}))
        };
        let call = |name: &str| {
            json!([{"role": "assistant", "tool_calls": [{"id": "1", "type": "function",
            "function": {"name": name, "arguments": "{}"}}]}, {"role": "tool", "content": "12 ms"}])
        };
        assert_eq!(chat("90 s left", json!([])), chat("80 s left", json!([])));
        assert_eq!(chat("a", call("test")), chat("b", call("test")));
        assert_ne!(chat("a", call("test")), chat("a", call("bench")));
        assert_ne!(chat("a", call("test")), chat("a", json!([])));
        let messages = |kind: &str| {
            of(
                Wire::Messages,
                json!({"messages": [{"role": "user", "content": [{"type": kind}]}]}),
            )
        };
        assert_ne!(messages("text"), messages("tool_result"));
        let body = json!({"messages": [{"role": "user", "content": "x"}], "model": "y"});
        let prepared = prepared(Wire::Chat, &body).0;
        assert_eq!(prepared.shape, of(Wire::Chat, body));
        assert_eq!(shape(Wire::Chat, &prepared.body), Some(prepared.shape));
        assert_eq!(shape(Wire::Chat, b"[]"), None);
    }

    proptest! {
        #[test]
        fn garbage_is_refused_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for wire in Wire::ALL {
                let _ = prepare(wire, &bytes, "m");
            }
        }
    }
}
