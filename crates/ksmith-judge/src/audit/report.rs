//! What an audit found.

use ksmith_task::Instance;
use serde::{Deserialize, Serialize};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The task cannot be locked.
    Error,
    /// The task can be locked; a person should know.
    Warning,
}

/// One thing that is wrong with a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable name of the check.
    pub check: String,
    /// How bad.
    pub severity: Severity,
    /// What, and what to do.
    pub text: String,
}

impl Finding {
    pub(crate) fn error(check: &str, text: String) -> Self {
        Self {
            check: check.to_owned(),
            severity: Severity::Error,
            text,
        }
    }

    pub(crate) fn warning(check: &str, text: String) -> Self {
        Self {
            check: check.to_owned(),
            severity: Severity::Warning,
            text,
        }
    }
}

/// What one scoring costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Hidden cases.
    pub hidden_cases: usize,
    /// Probes, with those at dev shapes.
    pub probe_cases: usize,
    /// Storage of all of them in bytes.
    pub bytes: u64,
    /// Predicted seconds of the correctness gates.
    pub seconds: f64,
    /// Predicted seconds for the cases of one stage of the bench.
    pub bench_pool_seconds: f64,
    /// What the contract allows.
    pub limit_seconds: f64,
}

/// The audit of one task instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// The instance.
    pub instance: String,
    /// All findings.
    pub findings: Vec<Finding>,
    /// What one scoring costs; `None` where the baseline already fails.
    pub cost: Option<Cost>,
}

impl Audit {
    pub(crate) fn new(instance: &Instance, findings: Vec<Finding>, cost: Cost) -> Self {
        Self {
            instance: instance.id(),
            findings,
            cost: Some(cost),
        }
    }

    pub(crate) fn refused(instance: &Instance, finding: Finding) -> Self {
        Self {
            instance: instance.id(),
            findings: vec![finding],
            cost: None,
        }
    }

    /// Whether the task may be locked.
    pub fn passed(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity != Severity::Error)
    }
}
