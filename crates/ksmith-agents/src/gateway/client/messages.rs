//! Anthropic messages. Thinking is bound to its conversation and goes back as it came.

use serde_json::{Value, json};

use super::{Message, Spoken, Stop, Tool, ToolUse};

pub(super) fn request(messages: &[Message], tools: &[Tool], max_tokens: u64) -> Value {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, parts) = match message {
            Message::System(text) => {
                system.push(text.as_str());
                continue;
            }
            Message::User(text) => ("user", vec![json!({"type": "text", "text": text})]),
            Message::Result { id, text, is_error } => (
                "user",
                vec![
                    json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}),
                ],
            ),
            Message::Assistant(Spoken {
                raw: Value::Array(parts),
                ..
            }) => ("assistant", parts.clone()),
            Message::Assistant(spoken) => ("assistant", vec![json!({"type": "text", "text": spoken.text})]),
        };
        // All results of one turn belong into one message.
        match turns.last_mut() {
            Some((last, found)) if *last == role => found.extend(parts),
            Some(_) | None => turns.push((role, parts)),
        }
    }
    let turns: Vec<Value> = turns
        .into_iter()
        .map(|(role, parts)| json!({"role": role, "content": parts}))
        .collect();
    let mut request = json!({"max_tokens": max_tokens, "messages": turns});
    if !system.is_empty() {
        request["system"] = system.join("\n\n").into();
    }
    if !tools.is_empty() {
        request["tools"] = tools
            .iter()
            .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}))
            .collect();
    }
    request
}

pub(super) fn answer(body: &Value) -> Result<(Spoken, Stop), &'static str> {
    let parts = body["content"].as_array().ok_or("it has no content")?;
    let mut spoken = Spoken {
        raw: body["content"].clone(),
        ..Spoken::default()
    };
    for part in parts {
        match part["type"].as_str() {
            Some("text") => spoken.text.push_str(part["text"].as_str().unwrap_or_default()),
            Some("tool_use") => spoken.calls.push(ToolUse {
                id: part["id"].as_str().unwrap_or_default().to_owned(),
                name: part["name"].as_str().ok_or("a tool call has no name")?.to_owned(),
                arguments: part["input"].clone(),
            }),
            _ => {}
        }
    }
    let stop = match body["stop_reason"].as_str() {
        Some("tool_use") => Stop::Tools,
        Some("end_turn" | "stop_sequence") | None => Stop::End,
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("refusal") => Stop::Refusal,
        Some(other) => Stop::Other(other.to_owned()),
    };
    Ok((spoken, stop))
}
