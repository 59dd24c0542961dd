//! Turns what serde and `toml` say into our words: what was found, what was expected, the nearest key.

use std::path::Path;

use crate::ContractError;
use crate::nearest::nearest;

/// The words between back-ticks, in order.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Serde's names of Rust types in the words of a contract.
fn plain_type(name: &str) -> &str {
    match name {
        "i64" => "an integer",
        "u8" => "an integer from 0 to 255",
        "u32" | "u64" => "an integer >= 0",
        "f64" => "a number",
        "a boolean" => "true or false",
        other => other,
    }
}

/// A parse error as a contract error. `shift` is where `text` begins in the parsed string.
pub(crate) fn translate(path: &Path, text: &str, error: &toml::de::Error, shift: usize) -> ContractError {
    let span = error
        .span()
        .map(|span| span.start.saturating_sub(shift)..span.end.saturating_sub(shift));
    let message = error.message().trim();
    let at = |message: String| ContractError::new(path, text, span.clone(), message);
    if let Some((head, tail)) = message.split_once(", expected") {
        let words = quoted(head);
        let known = quoted(tail);
        let found = words.first().copied().unwrap_or_default();
        let list = known
            .iter()
            .map(|key| format!("`{key}`"))
            .collect::<Vec<_>>()
            .join(", ");
        if head.starts_with("unknown field") {
            let near = nearest(found, known.iter().copied());
            return at(format!("unknown key `{found}`"))
                .expected("no key of this table")
                .help(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys here are {list}"),
                });
        }
        if head.starts_with("unknown variant") {
            let near = nearest(found, known.iter().copied());
            return at(format!("`{found}` is not a value of this key"))
                .expected(format!(
                    "expected {}{list}",
                    if known.len() > 1 { "one of " } else { "" }
                ))
                .maybe_help(near.map(|near| format!("did you mean `{near}`?")));
        }
        let tail = plain_type(tail.trim());
        let found = head
            .strip_prefix("invalid type: ")
            .or_else(|| head.strip_prefix("invalid value: "));
        let message = match found {
            Some(found) => format!("expected {tail}, found {found}"),
            None => head.to_owned(),
        };
        return at(message).expected(format!("expected {tail}"));
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        return at(format!("the key {rest} is missing")).expected("in this table");
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return at(format!("unknown key {rest}")).expected("no key of this table");
    }
    // The syntax errors of TOML come with their own expectation on a second line.
    let mut lines = message.lines();
    let first = lines.next().unwrap_or("not TOML").to_owned();
    let rest = lines.collect::<Vec<_>>().join(", ");
    let error = at(first);
    if rest.is_empty() {
        error
    } else {
        error.expected(rest)
    }
}
