//! Which way to work on this machine.

use serde::{Deserialize, Serialize};

use super::{Probes, Row};

/// The five routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteKind {
    /// Work on the GPU of this machine.
    ThisGpu,
    /// Work on the CPU tier.
    CpuOnly,
    /// Study profiles and records that others made.
    StudyEvidence,
    /// Rent a GPU by the hour.
    RentByTheHour,
    /// Learn and review the process without measuring.
    ProcessOnly,
}

/// A route, why, and what to check or do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The recommended one.
    pub kind: RouteKind,
    /// Why, in one sentence.
    pub reason: String,
    /// The first command to type.
    pub next: String,
    /// What to check or mind on this route.
    pub checks: Vec<String>,
    /// Other routes that are open here, with their reason.
    pub alternatives: Vec<Alternative>,
}

/// Another open route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// The route.
    pub kind: RouteKind,
    /// When to take it.
    pub reason: String,
    /// What to check on it.
    pub checks: Vec<String>,
}

pub(super) fn recommend(_rows: &[Row], _probes: &Probes<'_>) -> Route {
    Route {
        kind: RouteKind::CpuOnly,
        reason: String::new(),
        next: "ksmith run tasks/softmax".to_owned(),
        checks: Vec::new(),
        alternatives: Vec::new(),
    }
}
