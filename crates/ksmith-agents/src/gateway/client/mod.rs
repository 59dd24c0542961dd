//! A small typed client of the gateway, for our own writers and reviewers: a chat with tools, in any of the formats.
//!
//! It takes the same way as every agent (pinned model, budget, record), without a socket.

mod chat;
mod messages;
mod responses;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::exchange::{Core, Delivery, Incall};
use super::{Gateway, Usage, Wire};

/// Output tokens asked for where the format wants a number: enough for a kernel with its reasoning.
const MAX_OUTPUT: u64 = 32_000;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Standing instructions.
    System(String),
    /// What we say.
    User(String),
    /// What the model said.
    Assistant(Spoken),
    /// What a tool gave.
    Result {
        /// The call that it answers.
        id: String,
        /// The tool's words.
        text: String,
        /// Whether the tool failed.
        is_error: bool,
    },
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spoken {
    /// Its text; empty where it only calls tools.
    pub text: String,
    /// The tools that it calls.
    pub calls: Vec<ToolUse>,
    /// The answer's parts as they came: reasoning has to be handed back unchanged.
    raw: Value,
}

/// A tool that the model calls.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments; the text itself where the model wrote no JSON.
    pub arguments: Value,
}

/// A tool on offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments: an object.
    pub schema: Value,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It has said what it had to say.
    End,
    /// It waits for its tools.
    Tools,
    /// It reached the limit of its output.
    Length,
    /// It, or a filter, refused.
    Refusal,
    /// Something else, in the provider's word.
    Other(String),
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the model said.
    pub spoken: Spoken,
    /// Why it stopped.
    pub stop: Stop,
    /// What it used; zeros where the provider did not say (the record then holds an upper bound).
    pub usage: Usage,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The budget is spent; nothing was sent.
    #[error("{0}")]
    Spent(String),
    /// The provider, or the gateway, answered with an error.
    #[error("the model server answered with {status}: {message}")]
    Api {
        /// The status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The answer broke off.
    #[error("the model's answer broke off")]
    CutOff,
    /// The answer has not the shape of its format.
    #[error("the model's answer cannot be read: {0}")]
    Unreadable(String),
}

impl ClientError {
    /// Whether the same request may be answered a moment later: a busy or failing server, an answer that broke off.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Api { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 529),
            Self::CutOff => true,
            Self::Spent(_) | Self::Unreadable(_) => false,
        }
    }
}

/// A client of one gateway in one role.
#[derive(Clone)]
pub struct Client {
    core: Arc<Core>,
    role: String,
    waits: Vec<Duration>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that is charged as `role`. A busy or failing server is asked again after 1 s and 8 s.
    pub fn new(gateway: &Gateway, role: &str) -> Self {
        Self {
            core: Arc::clone(&gateway.core),
            role: role.to_owned(),
            waits: vec![Duration::from_secs(1), Duration::from_secs(8)],
        }
    }

    /// The same client with other waits before it asks a failing server again; none means it does not.
    pub fn with_waits(self, waits: impl IntoIterator<Item = Duration>) -> Self {
        Self {
            waits: waits.into_iter().collect(),
            ..self
        }
    }

    /// Says what comes next in a conversation.
    ///
    /// # Errors
    /// When the budget is spent, the server fails again and again, or the answer cannot be read.
    pub fn chat(&self, messages: &[Message], tools: &[Tool]) -> Result<Answer, ClientError> {
        let wire = self.core.wire;
        let request = match wire {
            Wire::Chat => chat::request(messages, tools),
            Wire::Responses => responses::request(messages, tools),
            Wire::Messages => messages::request(messages, tools, MAX_OUTPUT),
        };
        let body = self.ask(&request)?;
        let (spoken, stop) = match wire {
            Wire::Chat => chat::answer(&body),
            Wire::Responses => responses::answer(&body),
            Wire::Messages => messages::answer(&body),
        }
        .map_err(|what| ClientError::Unreadable(what.to_owned()))?;
        Ok(Answer {
            spoken,
            stop,
            usage: Usage::read(wire, &body["usage"]).unwrap_or_default(),
        })
    }

    fn ask(&self, request: &Value) -> Result<Value, ClientError> {
        let mut waits = self.waits.iter();
        loop {
            let error = match self.ask_once(request) {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            match waits.next() {
                Some(wait) if error.is_passing() => std::thread::sleep(*wait),
                Some(_) | None => return Err(error),
            }
        }
    }

    fn ask_once(&self, request: &Value) -> Result<Value, ClientError> {
        let bytes = request.to_string().into_bytes();
        let mut answer = ToMemory::default();
        let incall = Incall {
            role: &self.role,
            wire: self.core.wire,
            headers: &[],
            body: &bytes,
        };
        // Memory is always there.
        self.core
            .call(&incall, &mut answer)
            .map_err(|_| ClientError::CutOff)?;
        if !answer.is_whole {
            return Err(ClientError::CutOff);
        }
        let body: Result<Value, _> = serde_json::from_slice(&answer.bytes);
        if (200..300).contains(&answer.status) {
            return body.map_err(|error| ClientError::Unreadable(error.to_string()));
        }
        let body = body.unwrap_or_default();
        let error = &body["error"];
        let message = error["message"]
            .as_str()
            .or_else(|| error.as_str())
            .unwrap_or("no message")
            .to_owned();
        if error["code"] == "budget_spent" {
            return Err(ClientError::Spent(message));
        }
        Err(ClientError::Api {
            status: answer.status,
            message,
        })
    }
}

/// Arguments that a model wrote as text.
fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[derive(Debug, Default)]
struct ToMemory {
    status: u16,
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Delivery for ToMemory {
    fn whole(&mut self, status: u16, _: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        (self.status, self.bytes, self.is_whole) = (status, body.to_vec(), true);
        Ok(())
    }

    fn begin(&mut self, status: u16, _: &str) -> io::Result<()> {
        self.status = status;
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.is_whole = true;
        Ok(())
    }
}
