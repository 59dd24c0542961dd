//! `ksmith judge`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_ledger::{Decision, GateOutcome, Verdict};
use ksmith_loop::{JudgeRequest, Judged, TypePick};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place, summary};
use crate::live::Live;
use crate::signals;
use crate::ui::Ui;

/// Judge one candidate with every gate and a confirmed decision
///
/// Compiles the candidate in a box, proves it on fresh hidden cases, and measures it against the task's baseline:
/// decision, then confirmation with new processes, secrets and order. The record is a run of its own. Exit 0 if the
/// verdict is `accept`, 1 if the candidate was judged and not accepted, 3 if this machine allows no statement.
///
/// Example: ksmith judge my-kernel --task tasks/softmax --type T=f32
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The candidate's folder
    pub(crate) candidate: PathBuf,
    /// The task's folder or its task.toml
    #[arg(long)]
    pub(crate) task: PathBuf,
    /// Fix a dtype variable, for example T=f32; the default is the first instance
    #[arg(long = "type", value_name = "VARIABLE=DTYPE")]
    pub(crate) types: Vec<TypePick>,
    /// Run the candidate without a sandbox where the kernel gives none; the record shows it
    #[arg(long)]
    pub(crate) unsandboxed: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let judged = judge(args, ui)?;
    show(&judged, ui)
}

/// Judges, with progress on standard error.
pub(crate) fn judge(args: &Args, ui: &Ui) -> Result<Judged, crate::failure::Failure> {
    let request = JudgeRequest {
        candidate: args.candidate.clone(),
        task: args.task.clone(),
        home: place::home(),
        types: args.types.clone(),
        sandbox: super::run::sandbox(args.unsandboxed),
        interrupt: signals::interrupt()?,
        command: place::command(),
        signing_key: place::signing_key(),
    };
    let mut live = Live::new(ui);
    let judged = ksmith_loop::judge(&request, &mut live);
    live.finish();
    Ok(judged?)
}

/// What the process tells its caller.
pub(crate) fn exit_code(verdict: Option<&Verdict>) -> ExitCode {
    match verdict.map(|verdict| verdict.verdict) {
        Some(Decision::Accept) => ExitCode::Done,
        Some(Decision::Revise | Decision::Reject) => ExitCode::NotAccepted,
        Some(Decision::Ambiguous | Decision::Error) => ExitCode::Environment,
        None => ExitCode::NotAccepted,
    }
}

fn show(judged: &Judged, ui: &mut Ui) -> Outcome {
    let value = match &judged.verdict {
        Some(verdict) => json!({
            "verdict": verdict.verdict,
            "code": verdict.code,
            "gate": verdict.gate,
            "tier": verdict.tier,
            "isolation": verdict.isolation,
            "scope": verdict.scope,
            "scope_note": verdict.scope_note,
            "speedup": verdict.speedup,
            "gates": summary::gates(verdict),
            "run": judged.run,
        }),
        None => json!({ "verdict": null, "code": judged.refusal, "run": judged.run }),
    };
    let width = ui.width();
    ui.result(&value, || match &judged.verdict {
        Some(verdict) => format!("{}\nrun {}", text(verdict, width), judged.run),
        None => format!(
            "no verdict ({})\nrun {}",
            judged.refusal.as_deref().unwrap_or("interrupted"),
            judged.run
        ),
    })?;
    if judged.verdict.is_none() && judged.refusal.is_none() {
        return Ok(ExitCode::Interrupted);
    }
    Ok(exit_code(judged.verdict.as_ref()))
}

/// A verdict for people, with what the failed gates saw.
pub(crate) fn text(verdict: &Verdict, width: u16) -> String {
    let mut text = ksmith_report::table::verdict(verdict, width);
    explain(verdict, &mut text);
    text
}

/// What the failed gates saw, and what to do where nothing could be said.
pub(crate) fn explain(verdict: &Verdict, text: &mut String) {
    for gate in verdict
        .gates
        .iter()
        .filter(|gate| matches!(gate.result, GateOutcome::Fail | GateOutcome::Error))
    {
        if !gate.evidence.is_null() {
            let _ = write!(text, "\n{}: {}", gate.name, evidence(&gate.evidence));
        }
    }
    if !verdict.verdict.is_statement() {
        let _ = write!(
            text,
            "\nNo statement was possible; `ksmith doctor` shows what this machine lacks, and its noise."
        );
    }
}

/// Evidence for people: texts of many lines, such as what a compiler says, stand below the rest as they are.
fn evidence(value: &serde_json::Value) -> String {
    let Some(object) = value.as_object() else {
        return ksmith_report::clean(&value.to_string());
    };
    let (mut short, mut long) = (Vec::new(), String::new());
    for (name, value) in object {
        match value.as_str() {
            Some(text) if text.trim_end().contains('\n') => {
                let _ = write!(long, "\n{}", ksmith_report::clean(text.trim_end()));
            }
            Some(text) => short.push(format!("{name}: {}", ksmith_report::clean_line(text.trim_end()))),
            None if value.is_null() => {}
            None => short.push(format!(
                "{name}: {}",
                ksmith_report::clean_line(&value.to_string())
            )),
        }
    }
    format!("{}{long}", short.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::evidence;

    #[test]
    fn what_a_compiler_says_keeps_its_lines_and_the_rest_stands_on_one() {
        assert_eq!(
            evidence(&json!({ "stderr": "kernel.c:1: error\n  int x\n      ^\n" })),
            "\nkernel.c:1: error\n  int x\n      ^"
        );
        assert_eq!(
            evidence(&json!({ "output": "z", "place": [3, 1], "got": null })),
            "output: z, place: [3,1]"
        );
    }
}
