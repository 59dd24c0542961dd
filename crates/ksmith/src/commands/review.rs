//! `ksmith review`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_loop::{ContractReview, ContractSetting, ReviewerChoice, contract_digest, review_contract};
use ksmith_report::clean_line;
use ksmith_task::{Ambiguity, ExitCode, Task, ambiguity};
use serde_json::json;

use super::reviewing::ReviewArgs;
use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// List what a contract leaves open, and record how it is resolved
///
/// The built-in reviewer `lint` goes through ten named classes: each is a question with the answer that holds as things
/// stand, whether the contract itself says so, and the keys that would settle it. A command as reviewer reads the
/// contract in a box that it cannot write to, a model gets it as text; either names at least three ambiguities or every
/// class that it looked at. The answer is kept under `.ksmith/reviews`, with the calls of a model, and a run of this
/// contract begins once each ambiguity has a resolution. The task's files are never changed. A model may cost what the
/// contract's budget allows.
///
/// Example: ksmith review tasks/softmax --reviewer lint
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task's folder or its task.toml
    task: PathBuf,
    #[command(flatten)]
    review: ReviewArgs,
    /// Prices of models that come before the built-in table, as TOML
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Resolve an ambiguity of the kept review, for example `rounding=to even`; nobody is asked again
    #[arg(long = "resolve", value_name = "KEY=TEXT")]
    resolve: Vec<String>,
    /// Resolve what is left as it stands; nobody is asked again
    #[arg(long)]
    accept_rest: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let task = ksmith_loop::load(&args.task)?;
    let classes = ambiguity(&task);
    if !args.resolve.is_empty() || args.accept_rest {
        let review = resolve(args, &task)?;
        return show(&review, &classes, ui);
    }
    let options = args.review.options();
    let host = place::agent_host(ui);
    let home = place::home();
    let setting = ContractSetting {
        home: &home,
        host: &host,
        prices: args.prices.as_deref(),
    };
    let review = review_contract(&task, &options, &setting)?;
    // The rules say nothing that the contract's defaults do not answer: they block no run.
    if options.reviewer != ReviewerChoice::Lint {
        let path = review.keep(&home)?;
        ui.note(&format!("kept as {}", path.display()));
    }
    show(&review, &classes, ui)
}

fn resolve(args: &Args, task: &Task) -> Result<ContractReview, Failure> {
    let home = place::home();
    let mut review = ContractReview::find(&home, contract_digest(task))?.ok_or_else(|| {
        Failure::usage("this contract has no kept review")
            .hint("Review it first: `ksmith review TASK --reviewer COMMAND`. An edited contract needs a new review.")
    })?;
    for pair in &args.resolve {
        let (key, text) = pair
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{pair}` resolves nothing; expected `KEY=TEXT`")))?;
        review.resolve(key.trim(), text)?;
    }
    if args.accept_rest {
        let open: Vec<String> = review.open().into_iter().map(str::to_owned).collect();
        for key in open {
            review.resolve(&key, "left as it stands")?;
        }
    }
    review.keep(&home)?;
    Ok(review)
}

fn show(review: &ContractReview, classes: &[Ambiguity], ui: &mut Ui) -> Outcome {
    let open = review.open().len();
    let value = json!({
        "reviewer": review.reviewer,
        "vendor": review.vendor,
        "open": open,
        "ambiguities": review.ambiguities,
        "checked": review.checked,
        "unchecked": review.unchecked,
        "classes": classes,
        "lint": review.lint,
        "failed_attempts": review.failed_attempts,
        "spent": review.spent,
    });
    ui.result(&value, || text(review, classes, open))?;
    Ok(ExitCode::Done)
}

fn text(review: &ContractReview, classes: &[Ambiguity], open: usize) -> String {
    let mut text = String::new();
    for class in classes {
        let state = if class.settled { "settled" } else { "default" };
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
    for line in &review.lint {
        let _ = writeln!(text, "lint     {}", clean_line(line));
    }
    if review.reviewer == ReviewerChoice::Lint.to_string() {
        let _ = writeln!(text, "{open} of {} classes rest on a default.", classes.len());
        return text;
    }
    for found in &review.ambiguities {
        let state = if found.resolution.is_some() {
            "resolved"
        } else {
            "OPEN"
        };
        let ambiguity = &found.ambiguity;
        let _ = writeln!(
            text,
            "{state:<8} {} ({}, {}): {}",
            clean_line(&ambiguity.key),
            clean_line(&ambiguity.class),
            clean_line(&ambiguity.place),
            clean_line(&ambiguity.question)
        );
        for reading in &ambiguity.readings {
            let _ = writeln!(text, "         - {}", clean_line(reading));
        }
        match &found.resolution {
            Some(resolution) => {
                let _ = writeln!(text, "         resolution: {}", clean_line(resolution));
            }
            None => {
                let _ = writeln!(text, "         suggestion: {}", clean_line(&ambiguity.suggestion));
            }
        }
    }
    let _ = writeln!(
        text,
        "{open} of {} ambiguities of {} are open.",
        review.ambiguities.len(),
        clean_line(&review.reviewer)
    );
    if review.spent.calls > 0 {
        let _ = writeln!(
            text,
            "{} calls, {} tokens, {:.4} USD.",
            review.spent.calls,
            review.spent.tokens(),
            review.spent.dollars
        );
    }
    text
}
