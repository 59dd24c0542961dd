//! The draft: the six topics of the KDA workflow, from facts.

use std::fmt::Write as _;

use super::gate::DRAFT_TOPICS;
use crate::writer::Direction;

/// What is known before any code is written.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftFacts {
    /// The instance.
    pub instance: String,
    /// The task as a command argument.
    pub task: String,
    /// The goal as a time ratio to the baseline.
    pub goal: f64,
    /// The machine, one line each.
    pub machine: Vec<String>,
    /// How the baseline was proved: the gates it passed.
    pub gates: Vec<String>,
    /// The baseline's times and what physics asks for.
    pub workloads: Vec<WorkloadFact>,
    /// What lint, audit and doctor warn of.
    pub warnings: Vec<String>,
    /// Directions, best first.
    pub directions: Vec<Direction>,
    /// Directions of the draft that the plan leaves out, each with its reason.
    pub left_out: Vec<(String, String)>,
    /// What may be spent, in words.
    pub budget: String,
}

/// One workload.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadFact {
    /// Its name.
    pub name: String,
    /// Its sizes, in words.
    pub sizes: String,
    /// The baseline's rough time of one call in microseconds, where it was measured.
    pub median_us: Option<f64>,
    /// Bytes that must be moved.
    pub bytes: f64,
    /// Operations that must be done.
    pub flops: f64,
}

/// Writes the draft.
pub fn draft(facts: &DraftFacts) -> String {
    let mut text = format!("# Draft: {}\n", facts.instance);
    let bodies = [
        baseline(facts),
        risks(facts),
        directions(facts),
        first_steps(facts),
        commands(facts),
        evidence(facts),
    ];
    for (topic, body) in DRAFT_TOPICS.iter().zip(bodies) {
        let _ = write!(text, "\n## {topic}\n\n{body}");
    }
    text
}

fn baseline(facts: &DraftFacts) -> String {
    let mut text = String::new();
    for line in &facts.machine {
        let _ = writeln!(text, "- Machine: {line}.");
    }
    let gates = if facts.gates.is_empty() {
        "none".to_owned()
    } else {
        facts.gates.join(", ")
    };
    let _ = writeln!(
        text,
        "- The baseline was judged like a candidate; gates passed: {gates}."
    );
    for workload in &facts.workloads {
        let time = workload.median_us.map_or_else(
            || "not measured yet".to_owned(),
            |us| {
                let rate = workload.bytes / us / 1e3;
                format!("roughly {us:.1} us a call, {rate:.2} GB/s of unavoidable traffic")
            },
        );
        let _ = writeln!(
            text,
            "- Workload `{}` ({}): {time}.",
            workload.name, workload.sizes
        );
    }
    text
}

fn risks(facts: &DraftFacts) -> String {
    let mut text = String::new();
    for warning in &facts.warnings {
        let _ = writeln!(text, "- {}", warning.trim_end_matches('.').to_owned() + ".");
    }
    for workload in &facts.workloads {
        let intensity = workload.flops / workload.bytes.max(1.0);
        let bound = if workload.bytes <= 0.0 {
            "its unavoidable traffic is not declared, so no floor is known".to_owned()
        } else if intensity < 4.0 {
            format!(
                "{intensity:.2} operations per byte: memory is the likely limit once the arithmetic is vectorised"
            )
        } else {
            format!("{intensity:.2} operations per byte: arithmetic is the likely limit")
        };
        let _ = writeln!(text, "- Unknown for `{}`: {bound}.", workload.name);
    }
    let _ = writeln!(
        text,
        "- A gain below 1 % is not claimed: code layout alone moves times by as much."
    );
    text
}

fn directions(facts: &DraftFacts) -> String {
    let mut text = String::new();
    for (index, direction) in facts.directions.iter().enumerate() {
        let _ = writeln!(
            text,
            "{}. `{}`: {}; value {:.2}x, risk: {}.",
            index + 1,
            direction.name,
            direction.idea.trim_end_matches('.'),
            direction.value,
            direction.risk.trim_end_matches('.'),
        );
    }
    text
}

fn first_steps(facts: &DraftFacts) -> String {
    let mut text = String::from(
        "1. The baseline's source under six flag sets: the flag control, beside which every gain is named.\n",
    );
    for (index, direction) in facts.directions.iter().take(3).enumerate() {
        let _ = writeln!(text, "{}. Try `{}`.", index + 2, direction.name);
    }
    text
}

fn commands(facts: &DraftFacts) -> String {
    let task = &facts.task;
    format!(
        "- Correctness of a candidate: `ksmith test CANDIDATE --task {task}`\n\
         - Speed against the baseline: `ksmith bench CANDIDATE --task {task}`\n\
         - Every gate and a confirmed verdict: `ksmith judge CANDIDATE --task {task}`\n\
         - The contract's conditions and their commands: `ksmith lint {task}`\n"
    )
}

fn evidence(facts: &DraftFacts) -> String {
    format!(
        "- Keep: every gate passes and a confirmed lower bound of the gain over the champion lies above 1 %.\n\
         - Revise: every gate passes, the point gain is above zero, the bounds are undecided.\n\
         - Drop: a gate fails, or the gain is bounded below the floor; the record names gate and cause.\n\
         - Goal: a confirmed time ratio to the baseline with an upper 99 % bound of at most {:.2}.\n\
         - Budget: {}.\n",
        facts.goal, facts.budget
    )
}
