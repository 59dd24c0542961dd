//! Asking a reviewer: one attempt, one retry, then not passed.

use std::time::Instant;

use ksmith_task::Digest;
use serde::de::DeserializeOwned;

use super::prompt::{Binding, Prompt, Section};
use super::vendor::Identity;
use crate::process::Cause;

/// Attempts in all.
const ATTEMPTS: usize = 2;

/// What a reviewer said, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// The bytes that came through the pipe.
    pub bytes: Vec<u8>,
    /// Whether there were more than the limit.
    pub is_cut: bool,
}

/// Why a reviewer said nothing that could count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// Why.
    pub cause: Cause,
    /// What was seen.
    pub detail: String,
    /// What it had said until then, for the record; never read as a verdict.
    pub said: Vec<u8>,
}

/// Somebody who can be asked: a command, or a model.
pub trait Voice: std::fmt::Debug + Send {
    /// Who it is.
    fn identity(&self) -> &Identity;

    /// The number of an attempt about `subject` that a kill cut short and whose answer is on record: asked with the same
    /// number, it is not paid for again. Each is given once.
    fn begun(&mut self, subject: Subject) -> Option<String> {
        let _ = subject;
        None
    }

    /// Asks, in a fresh context.
    ///
    /// # Errors
    /// When there is nothing that could count as an answer.
    fn ask(&mut self, prompt: &Prompt) -> Result<Spoken, Silence>;
}

/// An answer that carries the binding of its attempt.
pub trait Bound: Sized {
    /// JSON Schema of the answer.
    fn schema() -> serde_json::Value;

    /// Reads the one object that an answer is.
    ///
    /// # Errors
    /// With the cause and what was seen, for anything else.
    fn read(bytes: &[u8], binding: &Binding) -> Result<Self, (Cause, String)>;
}

/// One attempt, for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// What was asked.
    pub prompt: String,
    /// What was said.
    pub said: Vec<u8>,
    /// Why it does not count; absent if it does.
    pub cause: Option<Cause>,
    /// What was seen.
    pub detail: String,
    /// The attempt's own number.
    pub nonce: String,
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// What asking came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Held<T> {
    /// The answer; absent where none counted.
    pub answer: Option<T>,
    /// Every attempt, in order.
    pub attempts: Vec<Attempt>,
}

impl<T> Held<T> {
    /// The cause of the last attempt that did not count.
    pub fn cause(&self) -> Option<Cause> {
        self.attempts.last().and_then(|attempt| attempt.cause)
    }
}

/// What is reviewed: the digests that an answer must carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Hash of the locked task.
    pub task: Digest,
    /// Hash of the files under review.
    pub source: Digest,
    /// Hash of the judge's build.
    pub judge: Digest,
}

/// Asks `voice` for an answer of kind `T`; once more where the first does not count.
pub fn hold<T: Bound>(voice: &mut dyn Voice, ask: &str, subject: Subject, sections: &[Section]) -> Held<T> {
    let mut attempts: Vec<Attempt> = Vec::new();
    while attempts.len() < ATTEMPTS {
        let began = Instant::now();
        let binding = match voice.begun(subject) {
            Some(nonce) => Ok(Binding::of(subject, nonce)),
            None => Binding::fresh(subject),
        };
        let binding = match binding {
            Ok(binding) => binding,
            Err(error) => {
                attempts.push(Attempt {
                    prompt: String::new(),
                    said: Vec::new(),
                    cause: Some(Cause::ReviewCouldNotRun),
                    detail: format!("the system gives no random numbers: {error}"),
                    nonce: String::new(),
                    ms: 0.0,
                });
                continue;
            }
        };
        let after = attempts.last().map(|attempt| attempt.detail.as_str());
        let prompt = Prompt::new(ask, &binding, sections, T::schema(), after);
        let (said, read) = match voice.ask(&prompt) {
            Ok(spoken) if spoken.is_cut => (
                spoken.bytes,
                Err((
                    Cause::ReviewTooLong,
                    "the answer is longer than the limit".to_owned(),
                )),
            ),
            Ok(spoken) => {
                let read = T::read(&spoken.bytes, &binding);
                (spoken.bytes, read)
            }
            Err(silence) => (silence.said, Err((silence.cause, silence.detail))),
        };
        let (answer, cause, detail) = match read {
            Ok(answer) => (Some(answer), None, String::new()),
            Err((cause, detail)) => (None, Some(cause), detail),
        };
        attempts.push(Attempt {
            prompt: prompt.text,
            said,
            cause,
            detail,
            nonce: binding.nonce,
            ms: began.elapsed().as_secs_f64() * 1e3,
        });
        if answer.is_some() {
            return Held { answer, attempts };
        }
    }
    Held {
        answer: None,
        attempts,
    }
}

/// Reads exactly one JSON object.
pub(super) fn read_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, (Cause, String)> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err((Cause::ReviewEmpty, "nothing was said".to_owned()));
    }
    // A list would fill a structure field by field as well.
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    if !is_object && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        return Err((Cause::ReviewBadShape, "it is no object".to_owned()));
    }
    // The shape of the error tells the two causes apart: no JSON at all, or another object.
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => (Cause::ReviewBadShape, error.to_string()),
        serde_json::error::Category::Io
        | serde_json::error::Category::Syntax
        | serde_json::error::Category::Eof => (Cause::ReviewNotJson, error.to_string()),
    })
}

/// Compares the four strings of an answer with what was asked.
pub(super) fn check_binding(
    binding: &Binding,
    [task, source, judge, nonce]: [&str; 4],
) -> Result<(), (Cause, String)> {
    for (found, wanted, cause) in [
        (task, binding.task.to_string(), Cause::ReviewWrongTask),
        (source, binding.source.to_string(), Cause::ReviewWrongSource),
        (judge, binding.judge.to_string(), Cause::ReviewWrongJudge),
        (nonce, binding.nonce.clone(), Cause::ReviewWrongNonce),
    ] {
        if found != wanted {
            return Err((cause, "a string of the binding is another".to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{Answer, Vendor, Word};

    /// Says what its script says; `{nonce}` and the rest are filled in from the prompt, as a reviewer would.
    #[derive(Debug)]
    struct Scripted {
        identity: Identity,
        lines: Vec<Result<&'static str, Cause>>,
        asked: usize,
        first_nonce: String,
    }

    impl Scripted {
        fn new(lines: &[Result<&'static str, Cause>]) -> Self {
            Self {
                identity: Identity {
                    name: "scripted".into(),
                    vendor: Vendor::Unknown,
                },
                lines: lines.to_vec(),
                asked: 0,
                first_nonce: String::new(),
            }
        }
    }

    fn value<'a>(prompt: &'a str, key: &str) -> &'a str {
        let start = format!("\n\"{key}\": \"");
        let at = prompt.find(&start).unwrap() + start.len();
        prompt[at..].split('"').next().unwrap()
    }

    const PASS: &str = r#"{"task":"{task}","source":"{source}","judge":"{judge}","nonce":"{nonce}","verdict":"pass","findings":[],"next":null}"#;
    const OLD: &str = r#"{"task":"{task}","source":"{source}","judge":"{judge}","nonce":"{old}","verdict":"pass","findings":[],"next":null}"#;

    impl Voice for Scripted {
        fn identity(&self) -> &Identity {
            &self.identity
        }

        fn ask(&mut self, prompt: &Prompt) -> Result<Spoken, Silence> {
            let line = self.lines[self.asked];
            self.asked += 1;
            let mut text = line
                .map_err(|cause| Silence {
                    cause,
                    detail: "scripted".into(),
                    said: PASS.into(),
                })?
                .to_owned();
            let nonce = value(&prompt.text, "nonce").to_owned();
            if self.first_nonce.is_empty() {
                self.first_nonce.clone_from(&nonce);
            }
            for key in ["task", "source", "judge", "nonce"] {
                text = text.replace(&format!("{{{key}}}"), value(&prompt.text, key));
            }
            text = text.replace("{old}", &self.first_nonce);
            Ok(Spoken {
                bytes: text.into_bytes(),
                is_cut: false,
            })
        }
    }

    fn held(lines: &[Result<&'static str, Cause>]) -> Held<Answer> {
        let subject = Subject {
            task: Digest::of(b"t"),
            source: Digest::of(b"s"),
            judge: Digest::of(b"j"),
        };
        hold(&mut Scripted::new(lines), "Review.", subject, &[])
    }

    #[test]
    fn a_valid_answer_needs_one_attempt_and_an_invalid_one_gets_one_more() {
        let first = held(&[Ok(PASS)]);
        assert_eq!(
            (first.answer.unwrap().word, first.attempts.len()),
            (Word::Pass, 1)
        );
        let second = held(&[Ok("no"), Ok(PASS)]);
        assert!(second.answer.is_some());
        assert_eq!(second.attempts[0].cause, Some(Cause::ReviewNotJson));
        assert!(second.attempts[1].prompt.contains("did not count"));
    }

    #[test]
    fn two_invalid_answers_are_not_passed_and_nobody_is_asked_a_third_time() {
        let held = held(&[Ok(""), Ok("I cannot help with that."), Ok(PASS)]);
        assert_eq!(held.answer, None);
        assert_eq!(held.attempts.len(), 2);
        assert_eq!(held.cause(), Some(Cause::ReviewNotJson));
    }

    #[test]
    fn an_answer_that_carries_the_number_of_the_first_attempt_does_not_count_in_the_second() {
        let held = held(&[Ok("garbage"), Ok(OLD)]);
        assert_eq!(held.answer, None);
        assert_eq!(held.cause(), Some(Cause::ReviewWrongNonce));
    }

    #[test]
    fn what_was_said_before_a_failure_is_kept_and_never_read() {
        let held = held(&[Err(Cause::ReviewEnded), Err(Cause::ReviewTimedOut)]);
        assert_eq!(held.answer, None);
        assert_eq!(held.attempts[0].said, PASS.as_bytes());
        assert_eq!(held.cause(), Some(Cause::ReviewTimedOut));
    }
}
