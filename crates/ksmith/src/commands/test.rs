//! `ksmith test`

use std::path::PathBuf;

use ksmith_loop::TypePick;
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, judge, summary};
use crate::ui::Ui;

/// Prove a candidate correct: every correctness gate, no timing
///
/// A probe for whoever writes kernels: no record, no verdict on speed. Exit 0 if every gate passes, 1 if one fails.
///
/// Example: ksmith test my-kernel --task tasks/softmax
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The candidate's folder
    candidate: PathBuf,
    /// The task's folder or its task.toml
    #[arg(long)]
    task: PathBuf,
    /// Fix a dtype variable, for example T=f32; the default is the first instance
    #[arg(long = "type", value_name = "VARIABLE=DTYPE")]
    types: Vec<TypePick>,
    /// Run the candidate without a sandbox where the kernel gives none
    #[arg(long)]
    unsandboxed: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let sandbox = super::run::sandbox(args.unsandboxed);
    ui.note("compiling, then every correctness gate");
    let verdict = ksmith_loop::test(&args.candidate, &args.task, &args.types, sandbox)?;
    let failed = ksmith_loop::first_failure(&verdict);
    let value = json!({
        "passed": failed.is_none() && verdict.verdict.is_statement(),
        "code": failed,
        "gates": summary::gates(&verdict),
        "tier": verdict.tier,
        "isolation": verdict.isolation,
        "scope": verdict.scope,
        "scope_note": verdict.scope_note,
    });
    let width = ui.width();
    ui.result(&value, || {
        let mut text = ksmith_report::table::proof(&verdict, failed.as_deref(), width);
        judge::explain(&verdict, &mut text);
        text
    })?;
    Ok(match (failed, verdict.verdict) {
        (None, decision) if !decision.is_statement() => ExitCode::Environment,
        (None, _) => ExitCode::Done,
        (Some(_), _) => ExitCode::NotAccepted,
    })
}
