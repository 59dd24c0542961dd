//! What is reported of a call: once before it is sent, once before its answer is passed on to completion.
//!
//! The order is the promise. A process that dies between the two leaves a call that was sent and never answered, and
//! its cost is counted at the upper bound. A process that dies after the second leaves an answer that a resumed run
//! is served from, so that it is not paid for twice.

use std::io;

use ksmith_task::Digest;
use serde_json::Value;

use super::{Usage, Wire};

/// A call that is about to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The call's id within the run.
    pub id: String,
    /// Who calls (`writer`, `reviewer`, …).
    pub role: String,
    /// The format.
    pub wire: Wire,
    /// The model that is asked: the pinned one.
    pub model: String,
    /// The model that the client named.
    pub asked_model: String,
    /// What the gateway changed in the request besides the model.
    pub changed: Vec<String>,
    /// What a recorded answer is found by.
    pub key: Digest,
    /// The request's body as sent, without secrets.
    pub request: Vec<u8>,
    /// The most that it can use.
    pub bound: Usage,
    /// The most that it can cost, in dollars.
    pub bound_usd: f64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The call's id within the run.
    pub id: String,
    /// Who called.
    pub role: String,
    /// The format.
    pub wire: Wire,
    /// The model that was asked.
    pub model: String,
    /// The model that the answer names.
    pub answered_model: Option<String>,
    /// What a recorded answer is found by.
    pub key: Digest,
    /// The request's body as sent, without secrets.
    pub request: Vec<u8>,
    /// The answer as it came, without secrets.
    pub answer: Body,
    /// The words of what went wrong, if something did.
    pub error: Option<String>,
    /// What it used, or can have used at most.
    pub usage: Usage,
    /// What it used, in the provider's words; null where it did not say.
    pub raw_usage: Value,
    /// What it cost, in dollars.
    pub cost_usd: f64,
    /// Whether usage and cost are upper bounds, because nobody told.
    pub is_estimated: bool,
    /// What it was priced by.
    pub priced_by: String,
    /// The earlier call whose recorded answer was served instead of asking again.
    pub served_from: Option<String>,
    /// Secrets that were taken out of request and answer.
    pub redactions: u64,
    /// Wall time in milliseconds.
    pub ms: f64,
    /// The part of it that this gateway took for itself.
    pub own_ms: f64,
}

/// An answer as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// Its status; absent where none came.
    pub status: Option<u16>,
    /// Its content type.
    pub content_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it came to its end.
    pub is_whole: bool,
}

impl Body {
    /// Whether it came as a stream of events.
    pub fn is_stream(&self) -> bool {
        self.content_type.starts_with("text/event-stream")
    }

    /// Whether it is an answer that can stand for the call.
    pub fn is_success(&self) -> bool {
        self.is_whole && self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// One of the two reports of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// It is about to be sent.
    Sent(Box<Sent>),
    /// It ended.
    Answered(Box<Answered>),
}

/// Whoever keeps the record of calls.
pub trait Sink: Send {
    /// Records one report and returns once it is on disk: what it reports happens, or is passed on, only after.
    ///
    /// # Errors
    /// When it could not be written; then the call is not sent, or its answer not completed, and the gateway lets
    /// nothing more through.
    fn call(&mut self, call: Call) -> io::Result<()>;
}

/// A sink that keeps nothing, for probes that belong to no run.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRecord;

impl Sink for NoRecord {
    fn call(&mut self, _: Call) -> io::Result<()> {
        Ok(())
    }
}
