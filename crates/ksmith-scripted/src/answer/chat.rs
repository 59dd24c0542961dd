//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{Answer, halves};
use crate::Usage;

fn usage(usage: Usage) -> Value {
    let prompt = usage.input + usage.cached + usage.cache_write;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

fn finish(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

pub(super) fn whole(answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if !answer.calls.is_empty() {
        let calls: Vec<Value> = answer
            .calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments.to_string()}})
            })
            .collect();
        message["tool_calls"] = calls.into();
    }
    let mut whole = json!({
        "id": format!("chatcmpl-{}", answer.number),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(answer)}],
    });
    if let Some(used) = answer.usage {
        whole["usage"] = usage(used);
    }
    whole
}

pub(super) fn events(answer: &Answer, wants_usage: bool) -> Vec<String> {
    let chunk = |choices: Value, used: Value| {
        let data = json!({
            "id": format!("chatcmpl-{}", answer.number),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": answer.model,
            "choices": choices,
            "usage": used,
        });
        format!("data: {data}\n\n")
    };
    let delta = |delta: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            Value::Null,
        )
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    for part in answer.text.iter().flat_map(|text| halves(text)) {
        events.push(delta(json!({"content": part})));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let arguments = call.arguments.to_string();
        let [first, second] = halves(&arguments);
        events.push(delta(
            json!({"tool_calls": [{"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": first}}]}),
        ));
        events.push(delta(
            json!({"tool_calls": [{"index": index, "function": {"arguments": second}}]}),
        ));
    }
    let last = json!([{"index": 0, "delta": {}, "finish_reason": finish(answer)}]);
    events.push(chunk(last, Value::Null));
    if let Some(used) = answer.usage.filter(|_| wants_usage) {
        events.push(chunk(json!([]), usage(used)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
