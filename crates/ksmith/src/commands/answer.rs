//! `ksmith answer`

use ksmith_ledger::{Entry, read_records};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Answer a question that a run has put to a person
///
/// A run that waits takes the answer up at once; one that was interrupted does so when it is resumed. Without an answer
/// before the deadline the run stops: no approval is assumed.
///
/// Example: ksmith answer 3f07 plan-bits yes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
    /// The question's id
    question: String,
    /// One of its choices
    choice: String,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let found = place::find(&args.run)?;
    let records = read_records(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let mut open = Vec::new();
    for record in &records {
        match record.entry().map_err(Failure::internal)? {
            Entry::Asked(asked) => open.push(asked),
            Entry::Answered(answered) => open.retain(|asked| asked.id != answered.id),
            _ => {}
        }
    }
    let asked = open
        .iter()
        .find(|asked| asked.id == args.question)
        .ok_or_else(|| {
            let ids: Vec<&str> = open.iter().map(|asked| asked.id.as_str()).collect();
            Failure::usage(format!("the run has no open question `{}`", args.question)).hint(format!(
                "Open questions: {}.",
                if ids.is_empty() {
                    "none".to_owned()
                } else {
                    ids.join(", ")
                }
            ))
        })?;
    let choice = args.choice.trim();
    if choice.is_empty()
        || (!asked.options.is_empty() && !asked.options.iter().any(|option| option == choice))
    {
        return Err(Failure::usage(format!("`{choice}` is none of the choices"))
            .hint(format!("Choices: {}.", asked.options.join(", "))));
    }
    ksmith_loop::answer(&found.dir, &asked.id, choice)?;
    ui.result(&json!({ "question": asked.id, "answer": choice }), || {
        format!("{}: {choice}", asked.id)
    })?;
    Ok(ExitCode::Done)
}
