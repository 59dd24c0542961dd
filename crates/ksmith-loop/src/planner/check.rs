//! Checks of the record by which a plan's step is done or given up: small predicates that code decides.
//!
//! `decided direction=NAME code=CODE` · `decided role=flag-control` · `left role=NAME >= N` ·
//! `rounds-without-gain direction=NAME >= N` · `time-ratio <= R` · `closed outcome=NAME`

use std::str::FromStr;

use ksmith_ledger::{PlanStep, Role};

use crate::Memory;

/// A predicate over the record.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// A candidate that fits was decided on.
    Decided {
        /// Its direction.
        direction: Option<String>,
        /// Its part.
        role: Option<String>,
        /// The verdict's code; absent means any verdict with a measurement.
        code: Option<String>,
    },
    /// So many candidates of a part left before a full scoring.
    Left {
        /// Their part.
        role: String,
        /// How many.
        least: u64,
    },
    /// So many rounds ended without a gain.
    RoundsWithoutGain {
        /// Of one direction; absent counts all.
        direction: Option<String>,
        /// How many.
        least: u64,
    },
    /// The upper bound of the champion's time ratio to the baseline.
    TimeRatio {
        /// At most this.
        most: f64,
    },
    /// The run ended so.
    Closed {
        /// The outcome's name.
        outcome: String,
    },
}

/// A text that is no check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no check of the record")]
pub struct CheckError(String);

impl FromStr for Check {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || CheckError(text.to_owned());
        let mut words = text.split_whitespace();
        let kind = words.next().ok_or_else(wrong)?;
        let mut fields: Vec<(&str, &str)> = Vec::new();
        let mut bound = None;
        while let Some(word) = words.next() {
            match word {
                ">=" | "<=" if bound.is_none() => bound = Some((word, words.next().ok_or_else(wrong)?)),
                _ if bound.is_some() => return Err(wrong()),
                _ => {
                    let (key, value) = word.split_once('=').ok_or_else(wrong)?;
                    if value.is_empty() || fields.iter().any(|(other, _)| *other == key) {
                        return Err(wrong());
                    }
                    fields.push((key, value));
                }
            }
        }
        let mut take = |key: &str| {
            let at = fields.iter().position(|(found, _)| *found == key)?;
            Some(fields.remove(at).1.to_owned())
        };
        let least = || match bound {
            Some((">=", number)) => number.parse::<u64>().map_err(|_| wrong()),
            Some(_) | None => Err(wrong()),
        };
        let check = match kind {
            "decided" if bound.is_none() => Self::Decided {
                direction: take("direction"),
                role: take("role"),
                code: take("code"),
            },
            "left" => Self::Left {
                role: take("role").ok_or_else(wrong)?,
                least: least()?,
            },
            "rounds-without-gain" => Self::RoundsWithoutGain {
                direction: take("direction"),
                least: least()?,
            },
            "time-ratio" => match bound {
                Some(("<=", number)) => Self::TimeRatio {
                    most: number
                        .parse()
                        .ok()
                        .filter(|most: &f64| *most > 0.0 && most.is_finite())
                        .ok_or_else(wrong)?,
                },
                Some(_) | None => return Err(wrong()),
            },
            "closed" if bound.is_none() => Self::Closed {
                outcome: take("outcome").ok_or_else(wrong)?,
            },
            _ => return Err(wrong()),
        };
        let any = Self::Decided {
            direction: None,
            role: None,
            code: None,
        };
        // A check that every run meets decides nothing.
        if fields.is_empty() && check != any {
            Ok(check)
        } else {
            Err(wrong())
        }
    }
}

impl Check {
    /// Whether the record meets it.
    pub fn holds(&self, memory: &Memory) -> bool {
        let has_role = |role: Role, wanted: &str| role.name() == wanted;
        match self {
            Self::Decided {
                direction,
                role,
                code,
            } => memory.candidates.iter().any(|candidate| {
                let proposed = &candidate.proposed;
                let fits = direction
                    .as_ref()
                    .is_none_or(|wanted| word(&proposed.direction) == *wanted)
                    && role.as_ref().is_none_or(|wanted| has_role(proposed.role, wanted));
                let decided = candidate.decided.as_ref().filter(|_| fits);
                decided.is_some_and(|decided| match code {
                    Some(code) => decided.verdict.code == *code,
                    None => decided.verdict.speedup.is_some(),
                })
            }),
            Self::Left { role, least } => {
                let left = memory.candidates.iter().filter(|candidate| {
                    has_role(candidate.proposed.role, role) && candidate.left_in_screening()
                });
                left.count() as u64 >= *least
            }
            Self::RoundsWithoutGain {
                direction: None,
                least,
            } => memory.rounds_without_gain(None) >= *least,
            Self::RoundsWithoutGain {
                direction: Some(wanted),
                least,
            } => memory
                .directions()
                .into_iter()
                .find(|direction| word(direction) == *wanted)
                .is_some_and(|direction| memory.rounds_without_gain(Some(direction)) >= *least),
            Self::TimeRatio { most } => memory
                .over_baseline()
                .is_some_and(|speedup| speedup.lower > 0.0 && 1.0 / speedup.lower <= *most),
            Self::Closed { outcome } => memory
                .closed
                .as_ref()
                .is_some_and(|closed| closed.outcome.name() == outcome),
        }
    }
}

/// A direction's name as one word, as checks name it.
pub(super) fn word(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join("_")
}

/// Where a step of a plan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Its check to pass holds.
    Done,
    /// Its check to fail holds.
    GivenUp,
    /// Neither holds.
    Open,
}

/// Where each step stands, by the record alone. What is done stays done.
pub fn states(steps: &[PlanStep], memory: &Memory) -> Vec<StepState> {
    let holds = |text: &str| text.parse::<Check>().is_ok_and(|check| check.holds(memory));
    steps
        .iter()
        .map(|step| {
            if holds(&step.passes) {
                StepState::Done
            } else if holds(&step.fails) {
                StepState::GivenUp
            } else {
                StepState::Open
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_nothing_else() {
        for text in [
            "decided role=flag-control",
            "decided direction=vector-exp code=accept/confirmed",
            "left role=flag-control >= 6",
            "rounds-without-gain direction=threads >= 5",
            "rounds-without-gain >= 24",
            "time-ratio <= 0.25",
            "closed outcome=goal-not-met",
        ] {
            assert!(text.parse::<Check>().is_ok(), "{text}");
        }
        for text in [
            "",
            "it works",
            "decided",
            "decided code=",
            "decided code=a code=b",
            "decided role=a >= 2",
            "left >= 6",
            "rounds-without-gain <= 5",
            "rounds-without-gain >= five",
            "time-ratio >= 0.2",
            "time-ratio <= nan",
            "closed",
            "left role=a >= 6 direction=b",
        ] {
            assert!(text.parse::<Check>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_record_meets_no_check() {
        let memory = Memory::default();
        for text in [
            "decided role=flag-control",
            "left role=flag-control >= 1",
            "rounds-without-gain >= 1",
            "time-ratio <= 1000",
            "closed outcome=goal-met",
        ] {
            assert!(!text.parse::<Check>().unwrap().holds(&memory), "{text}");
        }
    }
}
