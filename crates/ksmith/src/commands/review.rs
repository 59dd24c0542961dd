//! `ksmith review`

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use ksmith_task::{ExitCode, ambiguity};
use serde_json::json;

use super::Outcome;
use crate::ui::Ui;

/// Who reviews.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Reviewer {
    /// Rules; no model
    Lint,
}

/// List what a contract leaves open, in ten named classes
///
/// Each class is a question with the answer that holds as things stand, whether the contract itself says so, and the
/// keys that would settle it. Changes nothing.
///
/// Example: ksmith review tasks/softmax --reviewer lint
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task's folder or its task.toml
    task: PathBuf,
    /// Who reviews
    #[arg(long, value_enum, default_value = "lint")]
    reviewer: Reviewer,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let task = ksmith_loop::load(&args.task)?;
    let (name, classes) = match args.reviewer {
        Reviewer::Lint => ("lint", ambiguity(&task)),
    };
    let open = classes.iter().filter(|class| !class.settled).count();
    ui.result(
        &json!({ "reviewer": name, "open": open, "classes": classes }),
        || {
            let mut text = String::new();
            for class in &classes {
                let state = if class.settled { "settled" } else { "OPEN" };
                let _ = writeln!(
                    text,
                    "{state:<8} {}\n         {}",
                    class.class.question(),
                    class.answer
                );
                if !class.settled && !class.keys.is_empty() {
                    let _ = writeln!(text, "         settle it with: {}", class.keys.join(", "));
                }
            }
            let _ = writeln!(text, "{open} of {} classes rest on a default.", classes.len());
            text
        },
    )?;
    Ok(ExitCode::Done)
}
