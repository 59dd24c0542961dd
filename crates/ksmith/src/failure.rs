//! Errors as people see them: kind, cause chain, hints.

use std::fmt::Write as _;

use ksmith_loop::RunError;
use ksmith_task::{ContractError, ExitCode};

/// An error with its kind, its causes and what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ExitCode,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    /// A rendered place in a file, where the cause has one.
    place: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            place: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, message)
    }

    pub(crate) fn internal(error: impl std::error::Error) -> Self {
        Self::new(ExitCode::Internal, error.to_string()).caused_by(error.source())
    }

    pub(crate) fn of(code: ExitCode, error: &dyn std::error::Error) -> Self {
        Self::new(code, error.to_string()).caused_by(error.source())
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn caused_by(mut self, mut cause: Option<&dyn std::error::Error>) -> Self {
        while let Some(error) = cause {
            let text = error.to_string();
            // Transparent errors repeat their source's text.
            if self.causes.last() != Some(&text) && self.message != text {
                self.causes.push(text);
            }
            cause = error.source();
        }
        self
    }

    pub(crate) fn code(&self) -> ExitCode {
        self.code
    }

    fn kind(&self) -> &'static str {
        match self.code {
            ExitCode::Done => "done",
            ExitCode::NotAccepted => "not accepted",
            ExitCode::Usage => "usage",
            ExitCode::Environment => "environment",
            ExitCode::Changed => "changed",
            ExitCode::Internal => "internal fault",
            ExitCode::Interrupted => "interrupted",
        }
    }

    pub(crate) fn render(&self) -> String {
        let mut text = match &self.place {
            Some(place) => format!("error ({}):\n{}", self.kind(), place.trim_end()),
            None => format!("error ({}): {}", self.kind(), self.message),
        };
        // A rendered place tells its causes itself.
        for cause in self.causes.iter().filter(|_| self.place.is_none()) {
            let _ = write!(text, "\n  cause: {cause}");
        }
        for hint in &self.hints {
            let _ = write!(text, "\n  hint: {hint}");
        }
        text
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "error": {
                "kind": self.kind(),
                "message": self.message,
                "causes": self.causes,
                "hints": self.hints,
                "exit": self.code as u8,
            }
        })
    }
}

impl From<ContractError> for Failure {
    fn from(error: ContractError) -> Self {
        let mut failure = Self::new(ExitCode::Usage, error.to_string());
        failure.place = Some(error.render());
        failure
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let (code, hint) = (error.exit_code(), error.hint());
        let mut failure = match error {
            RunError::Contract(error) => error.into(),
            RunError::Baseline(ref source) | RunError::Candidate(ref source) => {
                let mut failure = Self::of(code, &error);
                failure.place = Some(source.render());
                failure
            }
            ref other => Self::of(code, other),
        };
        failure.hints.extend(hint);
        failure
    }
}
