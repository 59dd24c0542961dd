//! How a session with an agent ended: decided from what we saw, never from what the agent claims.

use ksmith_box::Ended;
use serde::{Deserialize, Serialize};

use super::Said;

/// How a session with an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It left other files than it was given.
    Finished,
    /// It left what it was given.
    NoChange,
    /// The money or tokens were spent, and the next call was refused.
    BudgetSpent,
    /// It used up its turns.
    TurnLimit,
    /// No call of the model was answered.
    ApiError,
    /// It changed what it may not change, or left what is no candidate; nothing of it is taken.
    Denied,
    /// It was killed by a fault, by its own flood of output, or left nothing and said that it failed.
    Crashed,
    /// Its time was over.
    TimedOut,
}

impl Outcome {
    /// Every outcome, for the documentation.
    pub const ALL: [Self; 8] = [
        Self::Finished,
        Self::NoChange,
        Self::BudgetSpent,
        Self::TurnLimit,
        Self::ApiError,
        Self::Denied,
        Self::Crashed,
        Self::TimedOut,
    ];

    /// The name that stands in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::NoChange => "no-change",
            Self::BudgetSpent => "budget-spent",
            Self::TurnLimit => "turn-limit",
            Self::ApiError => "api-error",
            Self::Denied => "denied",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed-out",
        }
    }

    /// Whether files that such a session leaves are taken at all. An honest agent that was cut off may have left a good
    /// kernel, and the judge decides on it as on any other; one that broke a rule gets nothing judged.
    pub fn may_leave_files(self) -> bool {
        match self {
            Self::Finished | Self::BudgetSpent | Self::TurnLimit | Self::TimedOut => true,
            Self::NoChange | Self::ApiError | Self::Denied | Self::Crashed => false,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What the model gateway counted during a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// Calls that a model answered.
    pub answered: u64,
    /// Calls that failed on the way.
    pub failed: u64,
    /// Calls that were refused because the budget is spent.
    pub refused: u64,
}

/// What we saw of a session.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// How its box ended; none for a writer without a process.
    pub ended: Option<Ended>,
    /// Whether it was ended for its flood of output.
    pub flooded: bool,
    /// Whether we ended it because the user wants to stop.
    pub interrupted: bool,
    /// Given files that it changed.
    pub protected: Vec<String>,
    /// What has no place in a candidate's folder.
    pub oddities: Vec<String>,
    /// Whether the candidate's files differ from those that it was given, or it submitted some.
    pub changed: bool,
    /// What the gateway counted; none if the writer uses no model of ours.
    pub model: Option<ModelFacts>,
    /// What its own stream admits.
    pub said: Said,
}

/// An outcome with its stable code and one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// Stable `writer/cause` string.
    pub code: &'static str,
    /// What was seen.
    pub reason: String,
}

/// Decides how a session ended; the first rule that holds counts.
pub fn decide(facts: &Facts) -> Ending {
    let end = |outcome, code, reason: String| Ending {
        outcome,
        code,
        reason,
    };
    if !facts.protected.is_empty() {
        let reason = format!("it changed {}", facts.protected.join(", "));
        return end(Outcome::Denied, "writer/protected-changed", reason);
    }
    if !facts.oddities.is_empty() {
        let reason = format!("in the candidate's folder {}", facts.oddities.join(", "));
        return end(Outcome::Denied, "writer/odd-files", reason);
    }
    if facts.flooded {
        let reason = "its output was longer than a session allows".to_owned();
        return end(Outcome::Crashed, "writer/output-flood", reason);
    }
    match &facts.ended {
        Some(Ended::TimedOut) => {
            return end(Outcome::TimedOut, "writer/timed-out", "its time was over".into());
        }
        Some(Ended::Killed) if facts.interrupted => {
            let reason = "it was stopped on request".to_owned();
            return end(Outcome::TimedOut, "writer/interrupted", reason);
        }
        // We kill for nothing else than a spent budget.
        Some(Ended::Killed) => {}
        Some(ended @ (Ended::Signal(_) | Ended::OutOfMemory | Ended::ForbiddenCall(_))) => {
            return end(Outcome::Crashed, "writer/crashed", format!("its box {ended}"));
        }
        Some(Ended::Exited(_)) | None => {}
    }
    if let Some(model) = facts.model {
        if model.refused > 0 {
            let reason = format!("{} calls were refused: the budget is spent", model.refused);
            return end(Outcome::BudgetSpent, "writer/budget-spent", reason);
        }
        if model.answered == 0 {
            let reason = format!("no call of the model was answered ({} failed)", model.failed);
            return end(Outcome::ApiError, "writer/api-error", reason);
        }
    }
    match &facts.said {
        Said { turn_limit: true, .. } => {
            return end(
                Outcome::TurnLimit,
                "writer/turn-limit",
                "its turns are used up".into(),
            );
        }
        Said {
            budget_spent: true, ..
        } => {
            let reason = "it says that its own budget is spent".to_owned();
            return end(Outcome::BudgetSpent, "writer/budget-spent", reason);
        }
        Said { .. } => {}
    }
    match (facts.changed, &facts.ended) {
        (true, Some(ended)) => end(
            Outcome::Finished,
            "writer/finished",
            format!("it left other files; its program {ended}, which counts for nothing"),
        ),
        (true, None) => end(Outcome::Finished, "writer/finished", "it left other files".into()),
        (false, Some(ended @ Ended::Exited(1..))) => end(
            Outcome::Crashed,
            "writer/crashed",
            format!("it left what it was given, and its program {ended}"),
        ),
        (false, _) => end(
            Outcome::NoChange,
            "writer/no-change",
            "it left what it was given".into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(ended: Ended) -> Facts {
        Facts {
            ended: Some(ended),
            changed: true,
            ..Facts::default()
        }
    }

    fn code(facts: &Facts) -> (Outcome, &'static str) {
        let ending = decide(facts);
        (ending.outcome, ending.code)
    }

    #[test]
    fn an_exit_code_neither_makes_nor_breaks_a_proposal() {
        for exit in [0, 1, 2, 127] {
            assert_eq!(
                code(&changed(Ended::Exited(exit))),
                (Outcome::Finished, "writer/finished")
            );
        }
        let unchanged = Facts {
            changed: false,
            ..changed(Ended::Exited(0))
        };
        assert_eq!(code(&unchanged), (Outcome::NoChange, "writer/no-change"));
    }

    #[test]
    fn a_success_without_an_answered_call_is_an_api_error() {
        let facts = Facts {
            model: Some(ModelFacts {
                answered: 0,
                failed: 3,
                refused: 0,
            }),
            ..changed(Ended::Exited(0))
        };
        assert_eq!(code(&facts), (Outcome::ApiError, "writer/api-error"));
    }

    #[test]
    fn a_broken_rule_counts_before_everything_else() {
        let facts = Facts {
            protected: vec!["task/reference.c".into()],
            flooded: true,
            ..changed(Ended::TimedOut)
        };
        assert_eq!(code(&facts), (Outcome::Denied, "writer/protected-changed"));
        assert!(!decide(&facts).outcome.may_leave_files());
        let facts = Facts {
            oddities: vec!["`kernel.c` is a symbolic link".into()],
            ..changed(Ended::Exited(0))
        };
        assert_eq!(code(&facts), (Outcome::Denied, "writer/odd-files"));
    }

    #[test]
    fn each_failure_of_the_process_has_its_code() {
        let flood = Facts {
            flooded: true,
            ..changed(Ended::Killed)
        };
        assert_eq!(code(&flood), (Outcome::Crashed, "writer/output-flood"));
        assert_eq!(
            code(&changed(Ended::TimedOut)),
            (Outcome::TimedOut, "writer/timed-out")
        );
        assert_eq!(
            code(&changed(Ended::OutOfMemory)),
            (Outcome::Crashed, "writer/crashed")
        );
        let refused = Facts {
            model: Some(ModelFacts {
                answered: 4,
                failed: 0,
                refused: 1,
            }),
            ..changed(Ended::Killed)
        };
        assert_eq!(code(&refused), (Outcome::BudgetSpent, "writer/budget-spent"));
        let turns = Facts {
            said: Said {
                turn_limit: true,
                ..Said::default()
            },
            ..changed(Ended::Exited(1))
        };
        assert_eq!(code(&turns), (Outcome::TurnLimit, "writer/turn-limit"));
        let failed = Facts {
            changed: false,
            ..changed(Ended::Exited(127))
        };
        assert_eq!(code(&failed), (Outcome::Crashed, "writer/crashed"));
    }
}
