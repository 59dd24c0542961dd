//! Anthropic messages.

use serde_json::{Value, json};

use super::{Answer, event, halves};

fn stop(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}

fn blocks(answer: &Answer) -> Vec<Value> {
    let text = answer
        .text
        .iter()
        .map(|text| json!({"type": "text", "text": text}));
    let calls = answer
        .calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
    text.chain(calls).collect()
}

/// Usage as far as it is known; `output` counts up while an answer is streamed.
fn usage(answer: &Answer, output: impl Fn(u64) -> u64) -> Option<Value> {
    answer.usage.map(|usage| {
        json!({
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": output(usage.output),
        })
    })
}

fn message(answer: &Answer, content: Vec<Value>, stop: Option<&str>, usage: Option<Value>) -> Value {
    let mut message = json!({
        "id": format!("msg_{}", answer.number),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
    });
    if let Some(usage) = usage {
        message["usage"] = usage;
    }
    message
}

pub(super) fn whole(answer: &Answer) -> Value {
    message(
        answer,
        blocks(answer),
        Some(stop(answer)),
        usage(answer, |output| output),
    )
}

pub(super) fn events(answer: &Answer) -> Vec<String> {
    let begun = message(answer, Vec::new(), None, usage(answer, |output| output.min(1)));
    let mut parts = vec![
        json!({"type": "message_start", "message": begun}),
        json!({"type": "ping"}),
    ];
    for (index, block) in blocks(answer).into_iter().enumerate() {
        let is_text = block["type"] == "text";
        let mut begun = block.clone();
        let text = if is_text {
            begun["text"] = "".into();
            block["text"].as_str().unwrap_or_default().to_owned()
        } else {
            begun["input"] = json!({});
            block["input"].to_string()
        };
        parts.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        for piece in halves(&text) {
            let delta = if is_text {
                json!({"type": "text_delta", "text": piece})
            } else {
                json!({"type": "input_json_delta", "partial_json": piece})
            };
            parts.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        parts.push(json!({"type": "content_block_stop", "index": index}));
    }
    let mut last =
        json!({"type": "message_delta", "delta": {"stop_reason": stop(answer), "stop_sequence": null}});
    if let Some(usage) = answer.usage {
        last["usage"] = json!({"output_tokens": usage.output});
    }
    parts.extend([last, json!({"type": "message_stop"})]);
    parts
        .iter()
        .map(|part| event(part["type"].as_str().unwrap_or_default(), part))
        .collect()
}
