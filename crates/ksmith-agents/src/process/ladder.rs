//! What follows when nothing gains: a new plan, then another family of ideas, then the end of the rounds.
//!
//! Counted in rounds that ended, in every phase of a run; waiting for a job is no round.

use serde::{Deserialize, Serialize};

/// How far a run has come down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Plan anew from what was learnt.
    Replan,
    /// Leave every direction tried since the last gain.
    OtherFamily,
    /// Begin no further round.
    Stop,
}

impl Rung {
    /// The name that stands in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replan => "replan",
            Self::OtherFamily => "other-family",
            Self::Stop => "stop",
        }
    }
}

/// Rounds without a significant gain at which each rung is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ladder {
    /// For a new plan.
    pub replan: u64,
    /// For another family.
    pub other_family: u64,
    /// For the end.
    pub stop: u64,
}

/// The default: thirds of the plateau of 24 rounds, which is eight per rung. Five tries close a direction before.
pub const LADDER: Ladder = Ladder {
    replan: 8,
    other_family: 16,
    stop: 24,
};

impl Ladder {
    /// The rung that `rounds` without a gain reach, if any.
    pub fn reached(self, rounds: u64) -> Option<Rung> {
        [
            (self.stop, Rung::Stop),
            (self.other_family, Rung::OtherFamily),
            (self.replan, Rung::Replan),
        ]
        .into_iter()
        .find(|(least, _)| rounds >= *least)
        .map(|(_, rung)| rung)
    }

    /// The rung to step down to now, given the lowest one taken since the last gain.
    pub fn next(self, rounds: u64, taken: Option<Rung>) -> Option<Rung> {
        self.reached(rounds)
            .filter(|rung| taken.is_none_or(|taken| *rung > taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_is_taken_once_and_in_order() {
        let mut taken = None;
        let mut steps = Vec::new();
        for rounds in 0..=30 {
            if let Some(rung) = LADDER.next(rounds, taken) {
                steps.push((rounds, rung));
                taken = Some(rung);
            }
        }
        assert_eq!(
            steps,
            [(8, Rung::Replan), (16, Rung::OtherFamily), (24, Rung::Stop)]
        );
    }

    #[test]
    fn a_gain_begins_anew_and_a_late_look_takes_the_lowest_rung() {
        assert_eq!(LADDER.next(3, None), None);
        assert_eq!(LADDER.next(17, None), Some(Rung::OtherFamily));
        assert_eq!(LADDER.next(17, Some(Rung::OtherFamily)), None);
    }
}
