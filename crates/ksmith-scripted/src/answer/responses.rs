//! OpenAI responses.

use serde_json::{Value, json};

use super::{Answer, event, halves};
use crate::Usage;

fn usage(usage: Usage) -> Value {
    let input = usage.input + usage.cached + usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output,
    })
}

fn items(answer: &Answer) -> Vec<Value> {
    let text = answer.text.iter().map(|text| {
        json!({"type": "message", "id": format!("msg_{}", answer.number), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
    });
    let calls = answer.calls.iter().map(|call| {
        let mut item = json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
            "name": call.name, "arguments": call.arguments.to_string(), "status": "completed"});
        if let Some(namespace) = &call.namespace {
            item["namespace"] = namespace.clone().into();
        }
        item
    });
    text.chain(calls).collect()
}

fn response(answer: &Answer, status: &str, output: Vec<Value>, used: Option<Usage>) -> Value {
    json!({
        "id": format!("resp_{}", answer.number),
        "object": "response",
        "created_at": 1_700_000_000,
        "model": answer.model,
        "status": status,
        "output": output,
        "usage": used.map(usage),
    })
}

pub(super) fn whole(answer: &Answer) -> Value {
    response(answer, "completed", items(answer), answer.usage)
}

pub(super) fn events(answer: &Answer) -> Vec<String> {
    let begun = response(answer, "in_progress", Vec::new(), None);
    let mut parts = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    for (index, item) in items(answer).into_iter().enumerate() {
        let id = item["id"].clone();
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        let (field, kind) = match item["type"].as_str() {
            Some("message") => ("content", "response.output_text.delta"),
            _ => ("arguments", "response.function_call_arguments.delta"),
        };
        let text = match field {
            "content" => item["content"][0]["text"].clone(),
            _ => item["arguments"].clone(),
        };
        begun[field] = if field == "content" { json!([]) } else { json!("") };
        parts.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        for delta in halves(text.as_str().unwrap_or_default()) {
            parts.push(json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0, "delta": delta}));
        }
        parts.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    parts.push(json!({"type": "response.completed", "response": whole(answer)}));
    parts
        .into_iter()
        .enumerate()
        .map(|(number, mut part)| {
            part["sequence_number"] = number.into();
            event(part["type"].as_str().unwrap_or_default(), &part)
        })
        .collect()
}
