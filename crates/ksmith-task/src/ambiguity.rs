//! What a contract leaves open: ten classes of ambiguity, found by rule, without a model.

use serde::Serialize;

use crate::Task;
use crate::contract::{AxisKind, Compare, NonFinite, Repeat};

/// The ten classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// How much faster is fast enough.
    Goal,
    /// May the dtype or the internal precision change.
    Precision,
    /// Which baseline is meant.
    Baseline,
    /// What happens with NaN and infinities.
    NonFinite,
    /// Which of equals is chosen.
    Ties,
    /// Which layouts occur.
    Layout,
    /// Which values occur.
    Range,
    /// Must two calls agree bit by bit.
    Determinism,
    /// Which inputs stay the same between calls.
    Static,
    /// Who pays for preparation.
    SetUp,
}

impl Class {
    /// All classes, in order.
    pub const ALL: [Self; 10] = [
        Self::Goal,
        Self::Precision,
        Self::Baseline,
        Self::NonFinite,
        Self::Ties,
        Self::Layout,
        Self::Range,
        Self::Determinism,
        Self::Static,
        Self::SetUp,
    ];

    /// The question of the class.
    pub fn question(self) -> &'static str {
        match self {
            Self::Goal => "How much faster is fast enough?",
            Self::Precision => "May the dtype or the internal precision change?",
            Self::Baseline => "Which baseline?",
            Self::NonFinite => "What happens with NaN and infinities?",
            Self::Ties => "Which of equal elements is chosen, and how are halves rounded?",
            Self::Layout => "Which layouts and alignments occur?",
            Self::Range => "Which values occur?",
            Self::Determinism => "Must two calls agree bit by bit?",
            Self::Static => "Which inputs stay the same between calls?",
            Self::SetUp => "Who pays for preparation?",
        }
    }
}

/// One class as this task answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ambiguity {
    /// The class.
    pub class: Class,
    /// Whether the contract itself says it (rather than a default).
    pub settled: bool,
    /// What holds as things stand.
    pub answer: String,
    /// The keys that settle it.
    pub keys: Vec<&'static str>,
}

/// The ten classes in order, each with what holds and whether the task's own text says so.
pub fn ambiguity(task: &Task) -> Vec<Ambiguity> {
    Class::ALL.into_iter().map(|class| answer(task, class)).collect()
}

fn answer(task: &Task, class: Class) -> Ambiguity {
    let contract = task.contract();
    let says = |key: &str| written(task, key);
    let (settled, answer, keys) = match class {
        Class::Goal => {
            let performance = &contract.performance;
            let one = contract.workloads.len() == 1 || contract.workloads.iter().any(|w| w.weight != 1.0);
            let text = format!(
                "a time ratio of {} to the baseline; the run goes on to {:?}; weights {}",
                performance.goal,
                performance.stop,
                contract
                    .workloads
                    .iter()
                    .map(|w| format!("{} {}", w.name, w.weight))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            (
                says("goal") && says("stop") && one,
                text.replace("Budget", "plateau or budget")
                    .replace("Goal", "the goal"),
                vec!["performance.goal", "performance.stop", "workloads.weight"],
            )
        }
        Class::Precision => {
            let compute = &contract.policy.compute;
            let text = if compute.is_empty() {
                "dtypes of tensors are fixed; inside, anything that meets the tolerance".to_owned()
            } else {
                let list: Vec<_> = compute.iter().map(|dtype| dtype.name()).collect();
                format!("dtypes of tensors are fixed; inside at least {}", list.join(", "))
            };
            (!compute.is_empty(), text, vec!["policy.compute", "outputs.rtol"])
        }
        Class::Baseline => {
            let list: Vec<_> = contract
                .baseline
                .iter()
                .map(|(b, path)| format!("{} for {}", path.display(), b.name()))
                .collect();
            let text = format!("{}; peers: {}", list.join(", "), contract.peers.len());
            (!contract.peers.is_empty(), text, vec!["baseline", "peers"])
        }
        Class::NonFinite => {
            let text = match contract.correctness.nonfinite {
                NonFinite::Forbid => "never drawn, never allowed in outputs",
                NonFinite::Match => "outputs are non-finite exactly where the rounded reference is",
            };
            (
                says("nonfinite"),
                text.to_owned(),
                vec!["correctness.nonfinite", "outputs.overflow"],
            )
        }
        Class::Ties => {
            let ordered = contract
                .outputs
                .iter()
                .find(|output| matches!(output.compare, Compare::Index { .. } | Compare::Rounded { .. }));
            match ordered {
                None => (
                    true,
                    "nothing is chosen or rounded to integers".to_owned(),
                    vec!["outputs.compare"],
                ),
                Some(output) => {
                    let tie = match &output.compare {
                        Compare::Index { tie, .. } | Compare::Rounded { tie } => tie.to_string(),
                        Compare::Elementwise | Compare::Exact | Compare::Checker { .. } => String::new(),
                    };
                    let text = format!("`{}`: any choice whose score is within {tie}", output.name);
                    (says("tie"), text, vec!["outputs.compare.tie"])
                }
            }
        }
        Class::Layout => {
            let strided = contract
                .inputs
                .iter()
                .any(|i| i.strides.is_some() || i.align.is_some())
                || contract
                    .outputs
                    .iter()
                    .any(|o| o.strides.is_some() || o.align.is_some());
            let multiple = contract
                .axes
                .iter()
                .any(|a| matches!(&a.kind, AxisKind::Range { multiple_of, .. } if *multiple_of > 1));
            let text = if strided {
                "as the strides say; the base pointer has its alignment"
            } else {
                "row-major without gaps, base pointers aligned to 64 bytes; odd sizes occur"
            };
            (
                strided || multiple,
                text.to_owned(),
                vec!["inputs.strides", "inputs.align", "axes.multiple_of"],
            )
        }
        Class::Range => {
            let open: Vec<_> = contract
                .inputs
                .iter()
                .filter(|i| i.domain.is_none())
                .map(|i| i.name.as_str())
                .collect();
            let text = if open.is_empty() {
                "every input has a domain".to_owned()
            } else {
                format!("no domain for {}: whatever the fills draw", open.join(", "))
            };
            (
                open.is_empty(),
                text,
                vec!["inputs.domain", "inputs.fill", "inputs.hidden"],
            )
        }
        Class::Determinism => {
            let text = match contract.correctness.repeat {
                Repeat::Bitwise => "two calls on the same input agree in every bit",
                Repeat::Tolerance => "two calls on the same input both pass the tolerance",
            };
            (says("repeat"), text.to_owned(), vec!["correctness.repeat"])
        }
        Class::Static => {
            let fixed: Vec<_> = contract
                .inputs
                .iter()
                .filter(|i| i.is_static)
                .map(|i| i.name.as_str())
                .collect();
            let text = if fixed.is_empty() {
                "none: every call sees new inputs".to_owned()
            } else {
                format!("{} stay the same", fixed.join(", "))
            };
            (says("static"), text, vec!["inputs.static"])
        }
        Class::SetUp => {
            let fixed = contract.inputs.iter().any(|i| i.is_static);
            let text = if fixed {
                "a `setup` step may prepare static inputs; it is timed and reported apart"
            } else {
                "every call pays for all of its work"
            };
            (says("static"), text.to_owned(), vec!["inputs.static"])
        }
    };
    Ambiguity {
        class,
        settled,
        answer,
        keys,
    }
}

/// Whether the task's own text has a key of this name (a family's default is not the user's word).
fn written(task: &Task, key: &str) -> bool {
    task.text().lines().any(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.match_indices(key).any(|(at, _)| {
            let before = line[..at]
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
            before && line[at + key.len()..].trim_start().starts_with('=')
        })
    })
}
