//! The static lint: what can be said of a contract without running anything.

mod acceptance;
mod checks;

use serde::Serialize;

use crate::Task;

pub use acceptance::{Acceptance, ScoringCost};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The contract cannot be used.
    Error,
    /// The contract can be used, but probably does not say what was meant.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Key path in the contract, such as `outputs.y.rtol`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Finding {
    pub(crate) fn error(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            key: key.into(),
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn warning(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(key, message)
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Everything the static lint found, errors first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LintReport {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Acceptance condition and the exact command that checks it.
    pub acceptance: Vec<Acceptance>,
    /// Predicted cost of one scoring, per instance.
    pub scoring: Vec<ScoringCost>,
}

impl LintReport {
    /// Whether the contract can be used.
    pub fn passes(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity != Severity::Error)
    }
}

/// Checks everything that needs no run.
pub fn lint(task: &Task) -> LintReport {
    let scoring = acceptance::scoring(task);
    let mut findings = checks::all(task, &scoring);
    findings.sort_by_key(|finding| finding.severity);
    findings.dedup();
    LintReport {
        findings,
        acceptance: acceptance::conditions(task),
        scoring,
    }
}
