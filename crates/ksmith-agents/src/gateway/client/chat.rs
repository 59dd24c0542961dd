//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{Message, Spoken, Stop, Tool, ToolUse, arguments};

pub(super) fn request(messages: &[Message], tools: &[Tool]) -> Value {
    let messages: Vec<Value> = messages.iter().map(message).collect();
    let mut request = json!({"messages": messages});
    if !tools.is_empty() {
        request["tools"] = tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {"name": tool.name, "description": tool.description,
                    "parameters": tool.schema}})
            })
            .collect();
    }
    request
}

fn message(message: &Message) -> Value {
    match message {
        Message::System(text) => json!({"role": "system", "content": text}),
        Message::User(text) => json!({"role": "user", "content": text}),
        Message::Result { id, text, is_error } => {
            let text = if *is_error {
                format!("error: {text}")
            } else {
                text.clone()
            };
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
        Message::Assistant(spoken) => {
            let mut message = json!({"role": "assistant", "content": spoken.text});
            if !spoken.calls.is_empty() {
                message["tool_calls"] = spoken
                    .calls
                    .iter()
                    .map(|call| {
                        json!({"id": call.id, "type": "function",
                            "function": {"name": call.name, "arguments": call.arguments.to_string()}})
                    })
                    .collect();
            }
            message
        }
    }
}

pub(super) fn answer(body: &Value) -> Result<(Spoken, Stop), &'static str> {
    let choice = body["choices"].get(0).ok_or("it has no choice")?;
    let message = choice["message"].as_object().ok_or("its choice has no message")?;
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    let mut calls = Vec::new();
    for call in message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let function = &call["function"];
        calls.push(ToolUse {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: function["name"]
                .as_str()
                .ok_or("a tool call has no name")?
                .to_owned(),
            arguments: arguments(function["arguments"].as_str().unwrap_or("{}")),
        });
    }
    let stop = match choice["finish_reason"].as_str() {
        _ if text("refusal").is_some() => Stop::Refusal,
        // Some servers say `stop` beside tool calls.
        _ if !calls.is_empty() => Stop::Tools,
        Some("stop") | None => Stop::End,
        Some("length") => Stop::Length,
        Some("content_filter") => Stop::Refusal,
        Some(other) => Stop::Other(other.to_owned()),
    };
    let spoken = Spoken {
        text: text("content")
            .or_else(|| text("refusal"))
            .unwrap_or_default()
            .to_owned(),
        calls,
        raw: Value::Null,
    };
    Ok((spoken, stop))
}
