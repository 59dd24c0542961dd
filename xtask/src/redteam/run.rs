//! Runs the corpora through the real judge.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_ledger::{Decision, Gate, Verdict};
use ksmith_task::{Candidate, Task};

use super::corpus::{Cheat, Honest, Naive, Target};
use super::{left, naive};
use crate::Failure;

/// How much of the judge runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All gates at small shapes, one process set.
    Corpus,
    /// Everything, confirmation too.
    Full,
}

/// How a cheat ended.
#[derive(Debug)]
pub(crate) struct CheatEnd {
    pub(crate) cheat: Cheat,
    /// The verdict's code.
    pub(crate) code: String,
    pub(crate) gate: Option<Gate>,
    pub(crate) caught: bool,
    pub(crate) naive: Option<Naive>,
}

/// How an honest candidate ended.
#[derive(Debug)]
pub(crate) struct HonestEnd {
    pub(crate) honest: Honest,
    pub(crate) code: String,
    pub(crate) passed: bool,
    pub(crate) evidence: String,
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) cheats: Vec<CheatEnd>,
    pub(crate) honest: Vec<HonestEnd>,
    pub(crate) naive_differs: usize,
    pub(crate) seconds: f64,
}

impl Outcome {
    pub(crate) fn caught(&self) -> usize {
        self.cheats.iter().filter(|end| end.caught).count()
    }

    pub(crate) fn passed(&self) -> usize {
        self.honest.iter().filter(|end| end.passed).count()
    }

    /// Adds a further run of the same corpora.
    pub(crate) fn add(&mut self, other: Self) {
        self.cheats.extend(other.cheats);
        self.honest.extend(other.honest);
        self.naive_differs += other.naive_differs;
        self.seconds += other.seconds;
    }

    pub(crate) fn good(&self) -> bool {
        self.caught() == self.cheats.len() && self.passed() == self.honest.len() && self.naive_differs == 0
    }

    pub(crate) fn last_line(&self) -> String {
        format!(
            "{} caught, {} missed, {} honest passed, {} wronged",
            self.caught(),
            self.cheats.len() - self.caught(),
            self.passed(),
            self.honest.len() - self.passed()
        )
    }
}

/// Opens the judge of one task instance with its state under `state`.
pub(crate) fn open(target: &Target, state: &Path, mode: Mode, without: Vec<Gate>) -> Result<Judge, Failure> {
    let task = Task::load(fs::canonicalize(target.folder())?)?;
    let instance = task
        .instances()
        .into_iter()
        .find(|instance| instance.id().contains(&target.types) || target.types.is_empty())
        .ok_or_else(|| format!("task `{}` has no instance `{}`", target.task, target.types))?;
    let mut options = JudgeOptions::new(&state.join(&target.task));
    options.effort = match mode {
        Mode::Corpus => Effort::Corpus,
        Mode::Full => Effort::Full,
    };
    options.without = without;
    Ok(Judge::open(&instance, options)?)
}

/// A folder that boxes can see.
pub(crate) fn state() -> Result<tempfile::TempDir, Failure> {
    let state = tempfile::tempdir()?;
    fs::set_permissions(state.path(), fs::Permissions::from_mode(0o755))?;
    Ok(state)
}

/// The verdict on one folder; a manifest that is refused counts as gate `policy`.
pub(crate) fn judge(judge: &mut Judge, folder: &Path) -> (Decision, String, Option<Gate>, Option<Verdict>) {
    match Candidate::load(folder) {
        Err(_) => (
            Decision::Reject,
            "policy/manifest".to_owned(),
            Some(Gate::Policy),
            None,
        ),
        Ok(candidate) => {
            let verdict = judge.score(&candidate);
            (verdict.verdict, verdict.code.clone(), verdict.gate, Some(verdict))
        }
    }
}

fn evidence(verdict: Option<&Verdict>) -> String {
    verdict
        .and_then(|verdict| verdict.gates.last())
        .map(|gate| gate.evidence.to_string().chars().take(300).collect())
        .unwrap_or_default()
}

/// What the gate that should have caught it said.
fn named(verdict: Option<&Verdict>, gate: Gate) -> String {
    verdict
        .and_then(|verdict| verdict.gates.iter().find(|result| result.name == gate))
        .map(|result| format!(" {gate}: {}", result.evidence))
        .unwrap_or_default()
}

/// An honest kernel may be slow or not faster by enough: that is a statement about speed, not a wrong.
fn wronged(decision: Decision, gate: Option<Gate>) -> bool {
    match decision {
        Decision::Accept | Decision::Revise | Decision::Ambiguous => false,
        Decision::Reject => !matches!(gate, Some(Gate::Gain | Gate::Regression | Gate::Slow)),
        Decision::Error => !matches!(gate, Some(Gate::Bench)),
    }
}

pub(crate) fn all(
    cheats: &[Cheat],
    honest: &[Honest],
    mode: Mode,
    without: &[Gate],
    with_naive: bool,
) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let state = state()?;
    let mut outcome = Outcome::default();
    let mut targets: BTreeMap<Target, (Vec<&Cheat>, Vec<&Honest>)> = BTreeMap::new();
    for cheat in cheats {
        targets.entry(cheat.target.clone()).or_default().0.push(cheat);
    }
    for candidate in honest {
        targets
            .entry(candidate.target.clone())
            .or_default()
            .1
            .push(candidate);
    }
    for (target, (cheats, honest)) in targets {
        let mut opened = open(&target, state.path(), mode, without.to_vec())?;
        let mut naive = if with_naive {
            Some(naive::Evaluator::open(&target, state.path())?)
        } else {
            None
        };
        let before = left::ours();
        for cheat in cheats {
            let from = Instant::now();
            let (decision, code, gate, verdict) = judge(&mut opened, &cheat.folder);
            let behind = left::behind(&before, Duration::from_secs(3));
            let caught = decision == Decision::Reject
                && gate.is_some_and(|gate| gate == cheat.gate || cheat.also.contains(&gate))
                && behind.is_empty();
            let said = match &mut naive {
                Some(naive) => Some(naive.judge(&cheat.folder)?),
                None => None,
            };
            let seconds = from.elapsed().as_secs_f64();
            eprintln!(
                "{} {:24} {code} (names {}) {seconds:.1} s {}",
                if caught { "ok  " } else { "MISS" },
                cheat.name,
                cheat.gate,
                if caught {
                    String::new()
                } else {
                    evidence(verdict.as_ref()) + &named(verdict.as_ref(), cheat.gate)
                },
            );
            if !behind.is_empty() {
                eprintln!("     left processes {behind:?}");
            }
            if let Some(said) = said {
                eprintln!("     NAIVE {} {}", cheat.name, said.name());
            }
            if let Some(said) = said
                && said.accepted() != cheat.naive.accepted()
            {
                outcome.naive_differs += 1;
                eprintln!(
                    "     naive evaluator differs: {}, the file says {}",
                    said.name(),
                    cheat.naive.name()
                );
            }
            outcome.cheats.push(CheatEnd {
                cheat: cheat.clone(),
                code,
                gate,
                caught,
                naive: said,
            });
        }
        for candidate in honest {
            let from = Instant::now();
            let (decision, code, gate, verdict) = judge(&mut opened, &candidate.folder);
            let behind = left::behind(&before, Duration::from_secs(3));
            let passed = !wronged(decision, gate) && behind.is_empty();
            let evidence = evidence(verdict.as_ref());
            let seconds = from.elapsed().as_secs_f64();
            eprintln!(
                "{} {:24} {code} {seconds:.1} s {}",
                if passed { "ok  " } else { "WRNG" },
                candidate.name,
                if passed { "" } else { &evidence },
            );
            outcome.honest.push(HonestEnd {
                honest: candidate.clone(),
                code,
                passed,
                evidence,
            });
        }
    }
    outcome.cheats.sort_by(|one, other| {
        (&one.cheat.family, &one.cheat.name).cmp(&(&other.cheat.family, &other.cheat.name))
    });
    outcome
        .honest
        .sort_by(|one, other| one.honest.name.cmp(&other.honest.name));
    outcome.seconds = started.elapsed().as_secs_f64();
    Ok(outcome)
}
