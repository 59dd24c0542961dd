//! OpenAI responses. Nothing is stored at the provider, so its reasoning comes encrypted and goes back as it came.

use serde_json::{Value, json};

use super::{Message, Spoken, Stop, Tool, ToolUse, arguments};

pub(super) fn request(messages: &[Message], tools: &[Tool]) -> Value {
    let mut input = Vec::new();
    let mut instructions = Vec::new();
    for message in messages {
        match message {
            Message::System(text) => instructions.push(text.as_str()),
            Message::User(text) => input.push(json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": text}]})),
            Message::Result { id, text, is_error } => {
                let text = if *is_error {
                    format!("error: {text}")
                } else {
                    text.clone()
                };
                input.push(json!({"type": "function_call_output", "call_id": id, "output": text}));
            }
            Message::Assistant(Spoken {
                raw: Value::Array(items),
                ..
            }) => input.extend(items.iter().cloned()),
            Message::Assistant(spoken) => {
                input.push(json!({"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": spoken.text}]}));
            }
        }
    }
    let mut request = json!({"input": input, "include": ["reasoning.encrypted_content"]});
    if !instructions.is_empty() {
        request["instructions"] = instructions.join("\n\n").into();
    }
    if !tools.is_empty() {
        request["tools"] = tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.schema, "strict": false})
            })
            .collect();
    }
    request
}

pub(super) fn answer(body: &Value) -> Result<(Spoken, Stop), &'static str> {
    let items = body["output"].as_array().ok_or("it has no output")?;
    let mut spoken = Spoken {
        raw: body["output"].clone(),
        ..Spoken::default()
    };
    let mut is_refused = false;
    for item in items {
        match item["type"].as_str() {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    is_refused |= part["type"] == "refusal";
                    let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
                    spoken.text.push_str(text.unwrap_or_default());
                }
            }
            Some("function_call") => spoken.calls.push(ToolUse {
                id: item["call_id"].as_str().unwrap_or_default().to_owned(),
                name: item["name"]
                    .as_str()
                    .ok_or("a function call has no name")?
                    .to_owned(),
                arguments: arguments(item["arguments"].as_str().unwrap_or("{}")),
            }),
            _ => {}
        }
    }
    let stop = match (
        body["status"].as_str(),
        body["incomplete_details"]["reason"].as_str(),
    ) {
        _ if is_refused => Stop::Refusal,
        (Some("incomplete"), Some("max_output_tokens")) => Stop::Length,
        (Some("incomplete"), Some("content_filter")) => Stop::Refusal,
        (Some("completed") | None, _) if spoken.calls.is_empty() => Stop::End,
        (Some("completed") | None, _) => Stop::Tools,
        (Some(other), reason) => Stop::Other(reason.unwrap_or(other).to_owned()),
    };
    Ok((spoken, stop))
}
