//! `ksmith check`

use std::path::PathBuf;

use ksmith_loop::TypePick;
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::ui::Ui;

/// Load a candidate, check it against the task's policy and compile it
///
/// Nothing of the candidate is run. Exit 0 if it compiles, 1 if it does not.
///
/// Example: ksmith check my-kernel --task tasks/softmax
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
    /// Compile without a sandbox where the kernel gives none
    #[arg(long)]
    unsandboxed: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let sandbox = super::run::sandbox(args.unsandboxed);
    let checked = ksmith_loop::check(
        &args.candidate,
        &args.task,
        &args.types,
        &place::data_dir(),
        sandbox,
    )?;
    let value = json!({
        "passed": checked.code.is_none(),
        "code": checked.code,
        "digest": checked.digest,
        "log": checked.log,
        "ms": checked.ms,
    });
    ui.result(&value, || match &checked.code {
        None => format!(
            "compiles ({:.0} ms), digest {}\n{}",
            checked.ms,
            checked.digest.short(),
            ksmith_report::clean(&checked.log)
        ),
        Some(code) => format!("{code}\n{}", ksmith_report::clean(&checked.log)),
    })?;
    Ok(if checked.code.is_none() {
        ExitCode::Done
    } else {
        ExitCode::NotAccepted
    })
}
