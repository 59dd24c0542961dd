//! The plan: pairs of step and criterion, each criterion decidable from the record.

use std::fmt::Write as _;

use ksmith_ledger::PlanStep;

use super::DraftFacts;
use super::check::word;
use crate::step::TRIES_PER_DIRECTION;

/// The section of a plan that names the draft's directions without a step.
pub(super) const LEFT_OUT: &str = "Left out";

/// The steps that follow from the draft, each with the check of the record by which it is done and the one by which it
/// is given up.
pub fn plan_steps(facts: &DraftFacts) -> Vec<PlanStep> {
    let mut steps = vec![PlanStep {
        step: "Measure the flag control".into(),
        criterion: "one of six flag sets has a `decided` record with every gate passed; its gain stands beside every later one".into(),
        passes: "decided role=flag-control".into(),
        fails: "left role=flag-control >= 6".into(),
    }];
    for direction in &facts.directions {
        let name = &direction.name;
        steps.push(PlanStep {
            step: format!("Try `{name}`: {}", direction.idea.trim_end_matches('.')),
            criterion: format!(
                "keep on `accept/confirmed`; drop on a failed gate or `gain/below-floor`; leave after {TRIES_PER_DIRECTION} rounds without a gain; predicted {:.2}x",
                direction.value
            ),
            passes: format!("decided direction={} code=accept/confirmed", word(name)),
            fails: format!("rounds-without-gain direction={} >= {TRIES_PER_DIRECTION}", word(name)),
        });
    }
    steps.push(PlanStep {
        step: "Confirm the champion and issue the certificate".into(),
        criterion: format!(
            "a `confirmed` record with new seeds; the goal is met if the upper 99 % bound of the time ratio is at most {:.2}",
            facts.goal
        ),
        passes: format!("time-ratio <= {}", facts.goal),
        fails: "closed outcome=goal-not-met".into(),
    });
    steps
}

/// Writes the plan.
pub fn plan(facts: &DraftFacts, steps: &[PlanStep]) -> String {
    let mut text = format!(
        "# Plan: {}\n\nFollows draft.md. Each step ends when its criterion is met.\n",
        facts.instance
    );
    for (index, step) in steps.iter().enumerate() {
        let _ = write!(
            text,
            "\n## Step {}\n\n- Step: {}\n- Criterion: {}\n- Passes: `{}`\n- Fails: `{}`\n",
            index + 1,
            step.step,
            step.criterion,
            step.passes,
            step.fails
        );
    }
    if !facts.left_out.is_empty() {
        let _ = write!(text, "\n## {LEFT_OUT}\n\n");
        for (direction, why) in &facts.left_out {
            let _ = writeln!(text, "- `{direction}`: {why}");
        }
    }
    text
}

/// Reads the steps back from a plan's text, whoever wrote it.
pub fn steps_of(text: &str) -> Vec<PlanStep> {
    let mut steps: Vec<PlanStep> = Vec::new();
    for line in text.lines() {
        if let Some(step) = line.strip_prefix("- Step:") {
            steps.push(PlanStep {
                step: step.trim().to_owned(),
                criterion: String::new(),
                passes: String::new(),
                fails: String::new(),
            });
            continue;
        }
        let Some(last) = steps.last_mut() else { continue };
        for (mark, field) in [
            ("- Criterion:", &mut last.criterion),
            ("- Passes:", &mut last.passes),
            ("- Fails:", &mut last.fails),
        ] {
            if let Some(value) = line.strip_prefix(mark) {
                let value = value.trim();
                let quoted = value.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
                // A check is quoted whole; a criterion may begin and end with two quotes of its own.
                *field = quoted
                    .filter(|inner| !inner.contains('`'))
                    .unwrap_or(value)
                    .to_owned();
            }
        }
    }
    steps
}
