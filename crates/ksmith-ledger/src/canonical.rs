//! Canonical JSON, the form of every body before it is hashed.
//!
//! No white space; object keys in ascending order of their UTF-8 bytes, each once; strings with the shortest escapes
//! (`\"`, `\\`, `\b \t \n \f \r`, other control characters as `\u00xx`, everything else as plain UTF-8); integers in
//! decimal; floats as the shortest decimal that reads back to the same double. NaN and the infinities are no JSON:
//! serde turns them into `null`, so an absent measurement and a meaningless one look the same.

use serde_json::Value;

/// Writes `value` in canonical form.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string())
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            // Sorted here and not by the map type: a feature of the JSON crate can change the map's order.
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            text.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
    }
}
