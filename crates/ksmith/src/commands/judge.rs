//! `ksmith judge`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_ledger::{Decision, GateOutcome, Verdict};
use ksmith_loop::{JudgeRequest, Judged, TypePick};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place, summary};
use crate::live::{Live, plain, show_gain};
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
        Some(Decision::Revise | Decision::Reject | Decision::Ambiguous) => ExitCode::NotAccepted,
        Some(Decision::Error) => ExitCode::Environment,
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
    ui.result(&value, || match &judged.verdict {
        Some(verdict) => text(verdict, &judged.run),
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

/// A verdict for people.
pub(crate) fn text(verdict: &Verdict, run: &str) -> String {
    let word = serde_json::to_value(verdict.verdict).ok();
    let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or("unknown");
    let mut text = String::new();
    let _ = writeln!(text, "{word} ({})", verdict.code);
    if let Some(gain) = verdict.speedup {
        let _ = writeln!(text, "gain over the champion  {}", show_gain(gain));
    }
    if let Some(gain) = verdict.over_baseline {
        let _ = writeln!(text, "gain over the baseline  {}", show_gain(gain));
    }
    for gate in &verdict.gates {
        let result = match gate.result {
            GateOutcome::Pass => "pass",
            GateOutcome::Fail => "FAIL",
            GateOutcome::Error => "error",
            GateOutcome::Skipped => "skipped",
        };
        let evidence = match (&gate.result, &gate.evidence) {
            (GateOutcome::Pass, _) | (_, serde_json::Value::Null) => String::new(),
            (_, serde_json::Value::String(text)) => format!("  {}", plain(text)),
            (_, other) => format!("  {}", plain(&other.to_string())),
        };
        let _ = writeln!(
            text,
            "  {:<14} {result:<8} {:>9.1} ms{evidence}",
            gate.name.name(),
            gate.ms
        );
    }
    let _ = writeln!(
        text,
        "tier {}, isolation {}, run {run}",
        verdict.tier, verdict.isolation
    );
    if !verdict.scope_note.is_empty() {
        let _ = writeln!(text, "{}", verdict.scope_note);
    }
    text
}
