//! `ksmith postmortem`

use ksmith_loop::Postmortem;
use ksmith_report::clean;
use ksmith_task::ExitCode;

use super::{Outcome, place};
use crate::ui::Ui;

/// Show what a run cost and what came of it
///
/// Computed from the record alone: accepted share of predicted gains, share of rounds without a gain, gain per round,
/// dollar and hour, accuracy of predictions, reviews, process gates, time by kind of work, and time spent waiting.
///
/// Example: ksmith postmortem 3f07
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let postmortem = Postmortem::of(&place::find(&args.run)?.dir)?;
    ui.result(&postmortem, || clean(&postmortem.to_string()))?;
    Ok(ExitCode::Done)
}
