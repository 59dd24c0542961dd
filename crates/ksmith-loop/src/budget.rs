//! Budgets: hard stops on wall time, full scorings, money, tokens and device time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a run may spend. A zero allows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Wall time in seconds, over all sittings of the run; infinite where there is no limit.
    pub wall_s: f64,
    /// Full scorings; screened configurations are counted apart.
    pub candidates: u64,
    /// Money for models, in US dollars.
    pub cost_usd: f64,
    /// Tokens of models, input and output together; none is no limit.
    pub tokens: Option<u64>,
    /// Seconds for which the judge may hold the device; none is no limit, and all that a run on the CPU has.
    #[serde(default)]
    pub device_s: Option<f64>,
}

/// What a run has spent, as its records show.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// Wall time in seconds, over all sittings; the time between them is not counted.
    pub wall_s: f64,
    /// Full scorings begun.
    pub candidates: u64,
    /// Candidates that went through the quick pass.
    pub screened: u64,
    /// Money in US dollars; calls whose cost nobody told count at their upper bound.
    pub cost_usd: f64,
    /// Tokens of models, input and output together.
    pub tokens: u64,
    /// Seconds for which the judge held the device.
    #[serde(default)]
    pub device_s: f64,
}

/// Why no further candidate is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The wall time is spent.
    Wall,
    /// The full scorings are spent.
    Candidates,
    /// The money is spent.
    Cost,
    /// The tokens are spent.
    Tokens,
    /// The device time is spent.
    Device,
    /// Nothing has gained for long.
    Plateau,
    /// The writer has nothing left to propose.
    Exhausted,
    /// The goal is confirmed and the task stops at its goal.
    Goal,
    /// A question to a person was not answered in time.
    NeedsHuman,
}

impl Stop {
    /// The stop of this name, as it stands in records.
    pub(crate) fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    /// A sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Wall => "The wall time is spent, but for what the end needs.",
            Self::Candidates => "The full scorings are spent.",
            Self::Cost => "The money is spent.",
            Self::Tokens => "The tokens are spent.",
            Self::Device => "The device time is spent, but for what the end needs.",
            Self::Plateau => "Nothing has gained for long.",
            Self::Exhausted => "The writer has nothing left to propose.",
            Self::Goal => "The goal is confirmed.",
            Self::NeedsHuman => "A question to a person was not answered in time.",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wall => "wall",
            Self::Candidates => "candidates",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Device => "device",
            Self::Plateau => "plateau",
            Self::Exhausted => "exhausted",
            Self::Goal => "goal",
            Self::NeedsHuman => "needs-human",
        })
    }
}

impl Budget {
    /// The part for one of `instances` dtype instances that share this budget.
    pub fn share(self, instances: usize) -> Self {
        let parts = instances.max(1);
        Self {
            wall_s: self.wall_s / parts as f64,
            // Nothing of the whole is lost to rounding: the last instance may use what the others left.
            candidates: self.candidates.div_ceil(parts as u64),
            cost_usd: self.cost_usd / parts as f64,
            tokens: self.tokens.map(|tokens| tokens.div_ceil(parts as u64)),
            device_s: self.device_s.map(|device| device / parts as f64),
        }
    }

    /// Which budget is spent, if any.
    pub fn stop(self, spent: &Spent) -> Option<Stop> {
        if spent.wall_s >= self.wall_s {
            Some(Stop::Wall)
        } else if spent.candidates >= self.candidates {
            Some(Stop::Candidates)
        } else if spent.cost_usd > 0.0 && spent.cost_usd >= self.cost_usd {
            // A run that uses no model needs no money.
            Some(Stop::Cost)
        } else if spent.tokens > 0 && self.tokens.is_some_and(|tokens| spent.tokens >= tokens) {
            Some(Stop::Tokens)
        } else if self.device_s.is_some_and(|device| spent.device_s >= device) {
            Some(Stop::Device)
        } else {
            None
        }
    }

    /// What the budget does not allow at all, in words; such a run would end before it began.
    pub fn forbids(self) -> Option<&'static str> {
        if self.wall_s <= 0.0 {
            Some("no wall time")
        } else if self.candidates == 0 {
            Some("no full scoring")
        } else if self.device_s.is_some_and(|device| device <= 0.0) {
            Some("no device time")
        } else {
            None
        }
    }

    /// Wall time left; the longest duration where there is no limit.
    pub fn left(self, spent: &Spent) -> Duration {
        let left = self.wall_s - spent.wall_s;
        if left.is_infinite() {
            return Duration::MAX;
        }
        Duration::try_from_secs_f64(left).unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        wall_s: 60.0,
        candidates: 3,
        cost_usd: 5.0,
        tokens: Some(1000),
        device_s: Some(30.0),
    };

    #[test]
    fn each_budget_is_a_hard_stop() {
        let fresh = Spent::default();
        assert_eq!(BUDGET.stop(&fresh), None);
        assert_eq!(
            BUDGET.stop(&Spent {
                wall_s: 60.0,
                ..fresh
            }),
            Some(Stop::Wall)
        );
        assert_eq!(
            BUDGET.stop(&Spent {
                candidates: 3,
                ..fresh
            }),
            Some(Stop::Candidates)
        );
        assert_eq!(
            BUDGET.stop(&Spent {
                cost_usd: 5.0,
                ..fresh
            }),
            Some(Stop::Cost)
        );
        assert_eq!(
            BUDGET.stop(&Spent {
                tokens: 1000,
                ..fresh
            }),
            Some(Stop::Tokens)
        );
        assert_eq!(
            BUDGET.stop(&Spent {
                device_s: 30.0,
                ..fresh
            }),
            Some(Stop::Device)
        );
        assert_eq!(
            BUDGET.stop(&Spent {
                screened: 1000,
                ..fresh
            }),
            None
        );
    }

    #[test]
    fn a_zero_allows_nothing() {
        let none = Budget {
            candidates: 0,
            ..BUDGET
        };
        assert_eq!(none.stop(&Spent::default()), Some(Stop::Candidates));
        assert_eq!(none.forbids(), Some("no full scoring"));
        let timeless = Budget {
            wall_s: 0.0,
            ..BUDGET
        };
        assert_eq!(
            (timeless.forbids(), BUDGET.forbids()),
            (Some("no wall time"), None)
        );
        let no_device = Budget {
            device_s: Some(0.0),
            ..BUDGET
        };
        assert_eq!(no_device.forbids(), Some("no device time"));
        assert_eq!(BUDGET.share(2).device_s, Some(15.0));
    }

    #[test]
    fn time_left_never_underflows() {
        let unlimited = Budget {
            wall_s: f64::INFINITY,
            ..BUDGET
        };
        assert_eq!(unlimited.left(&Spent::default()), Duration::MAX);
        assert_eq!(
            BUDGET.left(&Spent {
                wall_s: 61.0,
                ..Spent::default()
            }),
            Duration::ZERO
        );
    }
}
