//! What a run came to, as text and as JSON.

use std::fmt::Write as _;

use ksmith_ledger::Outcome as RunEnd;
use ksmith_loop::{InstanceOutcome, ModelsOutcome, RunOutcome};
use ksmith_report::{RunView, table};
use ksmith_task::ExitCode;
use serde_json::{Value, json};

use super::Outcome;
use crate::failure::Failure;
use crate::ui::Ui;

/// Prints the answer of `run` and `resume`.
pub(crate) fn show(outcome: &RunOutcome, ui: &mut Ui) -> Outcome {
    let width = ui.width();
    let texts: Vec<String> = outcome
        .instances
        .iter()
        .map(|instance| text(instance, width))
        .collect::<Result<_, _>>()?;
    ui.result(&to_json(outcome)?, || texts.join("\n\n"))?;
    Ok(outcome.exit_code())
}

/// One object: the instance that went worst, and all of them beneath where there is more than one.
fn to_json(outcome: &RunOutcome) -> Result<Value, Failure> {
    let headline = outcome
        .headline()
        .ok_or_else(|| Failure::usage("the task has no instances"))?;
    let mut object = serde_json::to_value(headline).map_err(Failure::internal)?;
    if outcome.instances.len() > 1 {
        object["instances"] = serde_json::to_value(&outcome.instances).map_err(Failure::internal)?;
    }
    Ok(object)
}

fn text(instance: &InstanceOutcome, width: u16) -> Result<String, Failure> {
    let view = RunView::load(&instance.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let mut text = table::summary(&view, width);
    let _ = write!(text, "\n{}", view.headline());
    if instance.no_statement {
        let _ = write!(
            text,
            "\nNo statement was possible: this machine was too busy or too noisy. `ksmith doctor` shows its noise; run \
             again on a quieter one."
        );
    }
    if instance.models.calls > 0 {
        let _ = write!(text, "\n{}", models(&instance.models));
    }
    let _ = write!(text, "\nfolder: {}", instance.dir.display());
    if instance.outcome == RunEnd::Interrupted {
        let _ = write!(text, "\nInterrupted; `ksmith resume {}` goes on.", instance.run);
    }
    Ok(text)
}

/// What the models used, with what is not known exactly and what is beyond the budget.
fn models(models: &ModelsOutcome) -> String {
    let mut text = format!(
        "models: {} calls, {} tokens, {:.4} USD",
        models.calls, models.tokens, models.cost_usd
    );
    if models.estimated_usd > 0.0 {
        let _ = write!(
            text,
            " (of which {:.4} at most: nobody told what was used)",
            models.estimated_usd
        );
    }
    if models.over_budget_usd > 0.0 {
        let _ = write!(
            text,
            "; {:.4} USD over the budget: a call is stopped only before it begins",
            models.over_budget_usd
        );
    }
    text
}

/// A gate list as `ksmith judge --json` shows it.
pub(crate) fn gates(verdict: &ksmith_ledger::Verdict) -> Vec<Value> {
    verdict
        .gates
        .iter()
        .map(|gate| json!({ "name": gate.name, "result": gate.result, "ms": gate.ms, "code": gate.code }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_beyond_the_budget_and_money_that_nobody_told_of_are_shown() {
        let within = ModelsOutcome {
            calls: 2,
            tokens: 240,
            cost_usd: 2.4,
            ..ModelsOutcome::default()
        };
        assert_eq!(models(&within), "models: 2 calls, 240 tokens, 2.4000 USD");
        let beyond = ModelsOutcome {
            estimated_usd: 1.2,
            over_budget_usd: 0.4,
            ..within
        };
        let text = models(&beyond);
        assert!(
            text.contains("1.2000 at most") && text.contains("0.4000 USD over the budget"),
            "{text}"
        );
    }
}
