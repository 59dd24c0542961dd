//! What a run came to, as text and as JSON.

use std::fmt::Write as _;

use ksmith_ledger::Outcome as RunEnd;
use ksmith_loop::{InstanceOutcome, RunOutcome};
use serde_json::{Value, json};

use super::Outcome;
use crate::duration;
use crate::failure::Failure;
use crate::live::show_gain;
use crate::ui::Ui;

/// Prints the answer of `run` and `resume`.
pub(crate) fn show(outcome: &RunOutcome, ui: &mut Ui) -> Outcome {
    ui.result(&to_json(outcome)?, || {
        outcome.instances.iter().map(text).collect::<Vec<_>>().join("\n")
    })?;
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

fn text(instance: &InstanceOutcome) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "run          {}", instance.run);
    let _ = writeln!(text, "instance     {}", instance.instance);
    let outcome = match instance.outcome {
        RunEnd::GoalMet => "goal met",
        RunEnd::GoalNotMet => "goal not met",
        RunEnd::Interrupted => "interrupted; `ksmith resume` goes on",
    };
    let _ = writeln!(text, "outcome      {outcome} ({})", instance.reason);
    match &instance.champion {
        None => {
            let _ = writeln!(text, "champion     none: the baseline stands");
        }
        Some(champion) => {
            let gain = |gain: Option<_>| gain.map_or_else(|| "not measured".to_owned(), show_gain);
            let _ = writeln!(
                text,
                "champion     {} (tier {}, isolation {})",
                champion.id, champion.tier, champion.isolation
            );
            let _ = writeln!(text, "over baseline      {}", gain(champion.speedup));
            let _ = writeln!(text, "over flag control  {}", gain(champion.over_flag_control));
        }
    }
    let _ = writeln!(
        text,
        "spent        {}, {} full scorings, {} screened",
        duration::show(instance.wall_s),
        instance.candidates,
        instance.screened
    );
    let _ = writeln!(text, "folder       {}", instance.dir.display());
    let _ = writeln!(text, "head         {}", instance.head);
    if instance.unsandboxed {
        let _ = writeln!(text, "WITHOUT A SANDBOX, as asked by --unsandboxed.");
    }
    if !instance.scope_note.is_empty() {
        let _ = writeln!(text, "{}", instance.scope_note);
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
