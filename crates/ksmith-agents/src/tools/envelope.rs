//! The one shape of every answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use super::Verb;

/// Most bytes of a summary; the rest stands in the report.
pub const SUMMARY_BYTES: usize = 2048;

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolVerdict {
    /// The candidate passed this probe. That is no verdict of the judge.
    Passed,
    /// The candidate failed it.
    Failed,
    /// An answer without a pass or a failure.
    Info,
    /// Not done yet; ask again with the ticket.
    Pending,
    /// The request is not allowed, or wrong.
    Refused,
    /// The probe could not be made.
    Unavailable,
}

impl ToolVerdict {
    /// The name that stands in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Info => "info",
            Self::Pending => "pending",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}

/// What a call cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Wall time in milliseconds.
    pub ms: f64,
}

/// The one shape of every answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The verb.
    pub tool: Verb,
    /// What was found.
    pub verdict: ToolVerdict,
    /// Stable `gate/cause` or `tool/cause` string, where something failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Hashes of what the answer is about, by name.
    #[serde(default)]
    pub artifacts: BTreeMap<String, Digest>,
    /// The answer in at most [`SUMMARY_BYTES`] bytes.
    pub summary: String,
    /// A file in the box with the whole answer, if the summary is not all.
    #[serde(default)]
    pub report: Option<PathBuf>,
    /// What it cost.
    #[serde(default)]
    pub cost: Cost,
    /// What to do next, one sentence.
    #[serde(default)]
    pub next: String,
    /// The ticket to ask again with, while the work goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

impl Envelope {
    /// An answer; a summary that is too long is cut and ends by saying so.
    pub fn new(tool: Verb, verdict: ToolVerdict, summary: impl Into<String>) -> Self {
        Self {
            tool,
            verdict,
            code: None,
            artifacts: BTreeMap::new(),
            summary: cut(summary.into()),
            report: None,
            cost: Cost::default(),
            next: String::new(),
            ticket: None,
        }
    }

    /// A wrong or forbidden request.
    pub fn refused(tool: Verb, code: &str, why: impl Into<String>) -> Self {
        Self::new(tool, ToolVerdict::Refused, why).code(code)
    }

    /// Adds the stable code.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Adds the hash of something that the answer is about.
    pub fn artifact(mut self, name: &str, digest: Digest) -> Self {
        self.artifacts.insert(name.to_owned(), digest);
        self
    }

    /// Adds the file with the whole answer.
    pub fn report(mut self, path: impl Into<PathBuf>) -> Self {
        self.report = Some(path.into());
        self
    }

    /// Says what to do next.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }
}

fn cut(mut text: String) -> String {
    const MARK: &str = "\n[cut; the report holds the rest]";
    if text.len() > SUMMARY_BYTES {
        let mut end = SUMMARY_BYTES - MARK.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_never_exceeds_its_bound_and_stays_text() {
        for text in ["x".repeat(5000), "ä".repeat(3000), "short".to_owned()] {
            let envelope = Envelope::new(Verb::Check, ToolVerdict::Info, text.clone());
            assert!(envelope.summary.len() <= SUMMARY_BYTES);
            assert_eq!(envelope.summary == text, text.len() <= SUMMARY_BYTES);
        }
    }

    #[test]
    fn an_envelope_survives_its_text_form() {
        let envelope = Envelope::new(Verb::Bench, ToolVerdict::Failed, "slower")
            .code("slow/slower")
            .artifact("candidate", Digest::of(b"x"))
            .next("try again");
        let text = serde_json::to_string(&envelope).unwrap();
        assert_eq!(serde_json::from_str::<Envelope>(&text).unwrap(), envelope);
    }
}
