//! When a reviewer is called: rarely, and each time for a reason that the record shows.

use serde::{Deserialize, Serialize};

/// Why a reviewer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// An accepted candidate is about to become champion.
    Crown,
    /// Three candidates in a row were dropped for the same reason.
    SameReason,
    /// Nothing has gained for long.
    Plateau,
    /// Half of the budget is spent.
    HalfBudget,
    /// Nine tenths of the budget are spent.
    NineTenths,
    /// The writer says that it is done.
    Done,
    /// A plan is about to be followed.
    Plan,
    /// A contract is about to be locked.
    Contract,
}

impl Occasion {
    /// The name that stands in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crown => "crown",
            Self::SameReason => "same-reason",
            Self::Plateau => "plateau",
            Self::HalfBudget => "half-budget",
            Self::NineTenths => "nine-tenths",
            Self::Done => "done",
            Self::Plan => "plan",
            Self::Contract => "contract",
        }
    }

    /// The occasion of this name.
    pub fn of(name: &str) -> Option<Self> {
        [
            Self::Crown,
            Self::SameReason,
            Self::Plateau,
            Self::HalfBudget,
            Self::NineTenths,
            Self::Done,
            Self::Plan,
            Self::Contract,
        ]
        .into_iter()
        .find(|occasion| occasion.name() == name)
    }
}

/// Drops in a row for one reason.
const SAME_REASON: usize = 3;

/// What the record shows of the course of a run since the last gain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Codes under which the latest candidates were dropped, oldest first; a kept one ends the row.
    pub drops: Vec<String>,
    /// Rounds without a gain.
    pub rounds_without_gain: u64,
    /// Rounds without a gain that count as a plateau.
    pub plateau: u64,
    /// The largest share of any budget that is spent, 0 to 1.
    pub spent: f64,
    /// Whether the writer says that it is done.
    pub says_done: bool,
}

/// A review that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldReview {
    /// Why.
    pub occasion: Occasion,
    /// What tells this occasion from others of its kind.
    pub mark: String,
    /// Whether a candidate has become champion since.
    pub is_before_last_gain: bool,
}

/// The occasion that calls for a review now, with its mark; crowning is not among them, since that is about one
/// candidate.
pub fn due(facts: &Facts, held: &[HeldReview]) -> Option<(Occasion, String)> {
    let was_held = |occasion: Occasion, mark: &str| {
        held.iter()
            .any(|held| held.occasion == occasion && held.mark == mark && !held.is_before_last_gain)
    };
    let once = |occasion: Occasion| held.iter().any(|held| held.occasion == occasion);
    if facts.says_done && !was_held(Occasion::Done, "") {
        return Some((Occasion::Done, String::new()));
    }
    if facts.spent >= 0.9 && !once(Occasion::NineTenths) {
        return Some((Occasion::NineTenths, String::new()));
    }
    if facts.spent >= 0.5 && !once(Occasion::HalfBudget) && !once(Occasion::NineTenths) {
        return Some((Occasion::HalfBudget, String::new()));
    }
    if facts.rounds_without_gain >= facts.plateau && !was_held(Occasion::Plateau, "") {
        return Some((Occasion::Plateau, String::new()));
    }
    let reason = facts.drops.last()?;
    let row = facts
        .drops
        .iter()
        .rev()
        .take_while(|code| *code == reason)
        .count();
    // Once per reason until the next gain: a search drops many for one reason, and is told once.
    (row >= SAME_REASON && !was_held(Occasion::SameReason, reason))
        .then(|| (Occasion::SameReason, reason.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            plateau: 8,
            ..Facts::default()
        }
    }

    fn held(occasion: Occasion, mark: &str) -> HeldReview {
        HeldReview {
            occasion,
            mark: mark.into(),
            is_before_last_gain: false,
        }
    }

    #[test]
    fn each_occasion_calls_once() {
        let drops = |codes: &[&str]| Facts {
            drops: codes.iter().map(|code| (*code).to_owned()).collect(),
            ..facts()
        };
        let same = ["dev/crash", "slow/slower", "slow/slower", "slow/slower"];
        let reason = Some((Occasion::SameReason, "slow/slower".to_owned()));
        assert_eq!(due(&drops(&same), &[]), reason);
        assert_eq!(due(&drops(&same[..3]), &[]), None);
        let before = held(Occasion::SameReason, "slow/slower");
        assert_eq!(due(&drops(&same), std::slice::from_ref(&before)), None);
        let before_gain = HeldReview {
            is_before_last_gain: true,
            ..before
        };
        assert_eq!(due(&drops(&same), &[before_gain]), reason);
    }

    #[test]
    fn budget_marks_are_held_once_in_a_run_and_the_half_is_skipped_after_the_nine_tenths() {
        let spent = |spent: f64| Facts { spent, ..facts() };
        assert_eq!(due(&spent(0.49), &[]), None);
        assert_eq!(due(&spent(0.5), &[]).unwrap().0, Occasion::HalfBudget);
        assert_eq!(due(&spent(0.95), &[]).unwrap().0, Occasion::NineTenths);
        assert_eq!(due(&spent(0.95), &[held(Occasion::NineTenths, "")]), None);
        assert_eq!(
            due(&spent(0.95), &[held(Occasion::HalfBudget, "")]).unwrap().0,
            Occasion::NineTenths
        );
    }

    #[test]
    fn a_plateau_and_a_claim_of_being_done_call() {
        let plateau = Facts {
            rounds_without_gain: 8,
            ..facts()
        };
        assert_eq!(due(&plateau, &[]).unwrap().0, Occasion::Plateau);
        assert_eq!(due(&plateau, &[held(Occasion::Plateau, "")]), None);
        let done = Facts {
            says_done: true,
            ..plateau
        };
        assert_eq!(due(&done, &[]).unwrap().0, Occasion::Done);
    }

    #[test]
    fn names_round_trip() {
        for name in [
            "crown",
            "same-reason",
            "plateau",
            "half-budget",
            "nine-tenths",
            "done",
            "plan",
            "contract",
        ] {
            assert_eq!(Occasion::of(name).unwrap().name(), name);
        }
        assert_eq!(Occasion::of("complete"), None);
    }
}
