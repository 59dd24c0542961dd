//! What a brief's history says, folded into times relative to the baseline.
//!
//! The agent keeps no state of its own: a run that resumes after a crash hands over the same history and gets the
//! same proposals. A configuration is read back from the hypothesis it was proposed with.

use ksmith_task::Outcome;

use crate::Config;

/// One earlier candidate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tried {
    pub(crate) candidate: String,
    pub(crate) direction: String,
    /// What stood in brackets at the end of the hypothesis, without the direction's name.
    pub(crate) label: String,
    /// Time as a ratio to the baseline; `None` where it failed or was not measured.
    pub(crate) time: Option<f64>,
    pub(crate) accepted: bool,
}

impl Tried {
    pub(crate) fn config(&self) -> Option<Config> {
        Config::parse(&self.label)
    }
}

/// The whole history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct History {
    pub(crate) tried: Vec<Tried>,
    /// Time of the champion as a ratio to the baseline.
    pub(crate) champion: f64,
}

impl History {
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        let mut champion = 1.0;
        let mut tried = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let time = outcome
                .measured
                .filter(|gain| gain.is_finite() && *gain > 0.0)
                .map(|gain| champion / gain);
            let accepted = outcome.verdict == "accept";
            if let (true, Some(time)) = (accepted, time) {
                champion = time;
            }
            tried.push(Tried {
                candidate: outcome.candidate.clone(),
                direction: outcome.direction.clone(),
                label: label_of(&outcome.hypothesis).unwrap_or_default().to_owned(),
                time,
                accepted,
            });
        }
        Self { tried, champion }
    }

    /// The candidates of a direction, oldest first.
    pub(crate) fn of_direction<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a Tried> {
        self.tried.iter().filter(move |tried| tried.direction == name)
    }

    /// How many candidates of a direction came after its last gain.
    pub(crate) fn fruitless(&self, name: &str) -> usize {
        self.of_direction(name)
            .rev()
            .take_while(|tried| !tried.accepted)
            .count()
    }

    pub(crate) fn has(&self, direction: &str, label: &str) -> bool {
        self.of_direction(direction).any(|tried| tried.label == label)
    }
}

/// The label at the end of a hypothesis, as [`with_label`] wrote it.
fn label_of(hypothesis: &str) -> Option<&str> {
    let inner = hypothesis.trim_end().strip_suffix(']')?;
    Some(&inner[inner.rfind('[')? + 1..])
}

/// A hypothesis that carries its label.
pub(crate) fn with_label(idea: &str, label: &str) -> String {
    format!("{idea} [{label}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(candidate: &str, label: &str, verdict: &str, measured: Option<f64>) -> Outcome {
        Outcome {
            candidate: candidate.to_owned(),
            hypothesis: with_label("Wider vectors.", label),
            direction: "rows".to_owned(),
            predicted: None,
            verdict: verdict.to_owned(),
            code: String::new(),
            measured,
            evidence: String::new(),
        }
    }

    #[test]
    fn gains_over_a_moving_champion_become_times_over_the_baseline() {
        let history = History::of(&[
            outcome("a", "lanes=8", "accept", Some(4.0)),
            outcome("b", "lanes=16", "revise", Some(0.5)),
            outcome("c", "lanes=4", "reject", None),
        ]);
        let times: Vec<_> = history.tried.iter().map(|tried| tried.time).collect();
        assert_eq!(times, [Some(0.25), Some(0.5), None]);
        assert_eq!(history.champion, 0.25);
        assert_eq!(history.fruitless("rows"), 2);
        assert_eq!(history.tried[1].config(), Config::parse("lanes=16"));
    }

    #[test]
    fn a_hypothesis_of_another_writer_has_no_label() {
        assert_eq!(label_of("Fuse both loops."), None);
    }
}
