//! `ksmith show`

use ksmith_ledger::{History, lookup};
use ksmith_task::ExitCode;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Show one candidate of a run: idea, verdict, gates, findings, sources
///
/// Example: ksmith show 3f07 c0004
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
    /// The candidate's id, `baseline` or `champion`
    #[arg(default_value = "champion")]
    candidate: String,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let found = place::find(&args.run)?;
    let history = History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let shown = lookup::show(&found.dir, &history, &args.candidate).map_err(place::lookup)?;
    let width = ui.width();
    ui.result(&shown, || ksmith_report::table::show(&shown, width))?;
    Ok(ExitCode::Done)
}
