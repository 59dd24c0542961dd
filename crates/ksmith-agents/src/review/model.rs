//! A model as a reviewer: one request over the gateway, one answer, no tools.
//!
//! It gets the text that a command gets and is read by the same reader. It has no files and no process, so there is
//! nothing that it could change. Its calls are charged and recorded as those of a role of their own.

use std::time::{Duration, Instant};

use super::attempt::{Silence, Spoken, Subject, Voice};
use super::prompt::{Prompt, nonce_about};
use super::vendor::Identity;
use super::vendor::Vendor;
use crate::gateway::{Client, ClientError, Gateway, Message, REVIEWER, Stop};
use crate::process::Cause;

/// Waits before a busy or failing server is asked again within one attempt.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(8)];

/// A model as a reviewer.
#[derive(Debug)]
pub struct ModelReviewer {
    identity: Identity,
    client: Client,
    limit: Duration,
    /// Requests of a step that a kill cut short, whose answers the gateway serves from its record; oldest first.
    begun: Vec<String>,
    /// Serves as long as it lives.
    _gateway: Gateway,
}

impl ModelReviewer {
    /// A reviewer that asks the model of `gateway`. `vendor` is what the user says of it; else it is told from the
    /// model's name. After `limit` no failing call of an attempt is made again; the gateway bounds each call.
    pub fn new(gateway: Gateway, vendor: Option<Vendor>, limit: Duration) -> Self {
        let model = gateway.model();
        Self {
            identity: Identity {
                name: format!("api:{model}"),
                vendor: vendor.unwrap_or_else(|| Vendor::of_model(model)),
            },
            client: Client::new(&gateway, REVIEWER).with_waits([]),
            limit,
            begun: Vec::new(),
            _gateway: gateway,
        }
    }

    /// Goes on with attempts that a kill cut short: `requests` are those whose answers are on record, oldest first.
    #[must_use]
    pub fn going_on(self, requests: Vec<String>) -> Self {
        Self {
            begun: requests,
            ..self
        }
    }

    fn say(&self, text: &str) -> Result<crate::gateway::Answer, ClientError> {
        let messages = [Message::User(text.to_owned())];
        let began = Instant::now();
        let mut waits = WAITS.into_iter();
        loop {
            let error = match self.client.chat(&messages, &[]) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match waits.next() {
                Some(wait) if error.is_passing() && began.elapsed() + wait < self.limit => {
                    std::thread::sleep(wait);
                }
                Some(_) | None => return Err(error),
            }
        }
    }
}

impl Voice for ModelReviewer {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn begun(&mut self, subject: Subject) -> Option<String> {
        let found = self
            .begun
            .iter()
            .enumerate()
            .find_map(|(at, text)| Some((at, nonce_about(text, subject)?)));
        let (at, nonce) = found?;
        self.begun.remove(at);
        Some(nonce)
    }

    fn ask(&mut self, prompt: &Prompt) -> Result<Spoken, Silence> {
        let began = Instant::now();
        let answer = self.say(&prompt.text).map_err(|error| Silence {
            cause: match &error {
                ClientError::Unreadable(_) => Cause::ReviewNotJson,
                ClientError::Api { .. } | ClientError::CutOff if began.elapsed() >= self.limit => {
                    Cause::ReviewTimedOut
                }
                ClientError::Spent(_) | ClientError::Api { .. } | ClientError::CutOff => {
                    Cause::ReviewCouldNotRun
                }
            },
            detail: error.to_string(),
            said: Vec::new(),
        })?;
        let said = answer.spoken.text.into_bytes();
        let ended = |detail: &str| Silence {
            cause: Cause::ReviewEnded,
            detail: detail.to_owned(),
            said: said.clone(),
        };
        match answer.stop {
            Stop::End => Ok(Spoken {
                bytes: said,
                is_cut: false,
            }),
            Stop::Length => Ok(Spoken {
                bytes: said,
                is_cut: true,
            }),
            // Whatever it had said until then is no verdict.
            Stop::Refusal => Err(ended("the model, or a filter, refused")),
            Stop::Tools => Err(ended("it called a tool, and has none")),
            Stop::Other(word) => Err(ended(&format!("it stopped with `{word:.40}`"))),
        }
    }
}
