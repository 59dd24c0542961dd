//! Renders an answer in the format of its request.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

use crate::{Action, Asked, Turn, Usage, Wire};

/// A tool call with everything resolved against the request's tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) arguments: Value,
}

/// An answer, before it has a format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// Number of the request, for ids.
    pub(crate) number: u64,
    pub(crate) model: String,
    pub(crate) text: Option<String>,
    pub(crate) calls: Vec<Call>,
    /// Absent where the server is to keep silent about it.
    pub(crate) usage: Option<Usage>,
}

impl Answer {
    /// Resolves a turn; says which tool is missing where the request does not offer it.
    pub(crate) fn of(turn: &Turn, asked: &Asked, number: u64) -> Result<Self, String> {
        let mut calls = Vec::new();
        for (index, action) in turn.calls.iter().enumerate() {
            let id = format!("call_{number}_{index}");
            calls.push(match action {
                Action::Shell(command) => {
                    let (tool, arguments) = asked
                        .shell(command)
                        .ok_or_else(|| format!("the request offers no shell tool: {:?}", names(asked)))?;
                    Call {
                        id,
                        name: tool.name.clone(),
                        namespace: tool.namespace.clone(),
                        arguments,
                    }
                }
                // A tool that is not on offer is called all the same: how a writer meets that is worth a test.
                Action::Call { name, arguments } => Call {
                    id,
                    name: asked.tool(name).map_or(name, |tool| &tool.name).clone(),
                    namespace: asked.tool(name).and_then(|tool| tool.namespace.clone()),
                    arguments: arguments.clone(),
                },
            });
        }
        let usage = (turn.fault != Some(crate::Fault::NoUsage)).then_some(turn.usage);
        Ok(Self {
            number,
            model: asked.model.clone(),
            text: turn.text.as_ref().map(|text| copied(text, turn, asked)),
            calls,
            usage,
        })
    }

    /// The whole answer as one JSON object.
    pub(crate) fn whole(&self, wire: Wire) -> Value {
        match wire {
            Wire::Chat => chat::whole(self),
            Wire::Responses => responses::whole(self),
            Wire::Messages => messages::whole(self),
        }
    }

    /// The answer as server-sent events.
    pub(crate) fn events(&self, asked: &Asked) -> Vec<String> {
        match asked.wire {
            Wire::Chat => chat::events(self, asked.wants_usage),
            Wire::Responses => responses::events(self),
            Wire::Messages => messages::events(self),
        }
    }
}

/// The text with what it copies from the request.
fn copied(text: &str, turn: &Turn, asked: &Asked) -> String {
    turn.copies.iter().fold(text.to_owned(), |text, name| {
        text.replace(&format!("{{{name}}}"), asked.value(name).unwrap_or_default())
    })
}

fn names(asked: &Asked) -> Vec<&str> {
    asked.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// An error body as the format has it.
pub(crate) fn error(wire: Option<Wire>, status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        _ => "api_error",
    };
    match wire {
        Some(Wire::Messages) => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Some(Wire::Chat | Wire::Responses) | None => {
            json!({"error": {"message": message, "type": kind, "code": null, "param": null}})
        }
    }
}

/// A text in two halves: a streamed answer has more than one piece.
fn halves(text: &str) -> [&str; 2] {
    let middle = text.len() / 2;
    let at = (middle..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let (first, second) = text.split_at(at);
    [first, second]
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
