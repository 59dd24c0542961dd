//! The plan: pairs of step and criterion, each criterion decidable from the record.

use std::fmt::Write as _;

use ksmith_ledger::PlanStep;

use super::DraftFacts;
use crate::step::TRIES_PER_DIRECTION;

/// The steps that follow from the draft.
pub fn plan_steps(facts: &DraftFacts) -> Vec<PlanStep> {
    let mut steps = vec![PlanStep {
        step: "Measure the flag control".into(),
        criterion: "one of six flag sets has a `decided` record with every gate passed; its gain stands beside every later one".into(),
    }];
    for direction in &facts.directions {
        steps.push(PlanStep {
            step: format!("Try `{}`: {}", direction.name, direction.idea.trim_end_matches('.')),
            criterion: format!(
                "keep on `accept/confirmed`; drop on a failed gate or `gain/below-floor`; leave after {TRIES_PER_DIRECTION} rounds without a gain; predicted {:.2}x",
                direction.value
            ),
        });
    }
    steps.push(PlanStep {
        step: "Confirm the champion and issue the certificate".into(),
        criterion: format!(
            "a `confirmed` record with new seeds; the goal is met if the upper 99 % bound of the time ratio is at most {:.2}",
            facts.goal
        ),
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
            "\n## Step {}\n\n- Step: {}\n- Criterion: {}\n",
            index + 1,
            step.step,
            step.criterion
        );
    }
    text
}

/// Reads the pairs back from a plan's text, whoever wrote it.
pub fn steps_of(text: &str) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    for line in text.lines() {
        if let Some(step) = line.strip_prefix("- Step:") {
            steps.push(PlanStep {
                step: step.trim().to_owned(),
                criterion: String::new(),
            });
        } else if let (Some(criterion), Some(last)) = (line.strip_prefix("- Criterion:"), steps.last_mut()) {
            last.criterion = criterion.trim().to_owned();
        }
    }
    steps
}
