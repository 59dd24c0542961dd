//! `ksmith diff`

use ksmith_ledger::{History, lookup};
use ksmith_task::ExitCode;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// Show how two candidates of a run differ: figures, source, assembly
///
/// Figures of different measurements stand side by side; they are not a comparison of the two.
///
/// Example: ksmith diff 3f07 baseline champion
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
    /// The first: a candidate's id, `baseline` or `champion`
    #[arg(default_value = "baseline")]
    a: String,
    /// The second
    #[arg(default_value = "champion")]
    b: String,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let found = place::find(&args.run)?;
    let history = History::load(&found.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let diff = lookup::diff(&found.dir, &history, &args.a, &args.b).map_err(place::lookup)?;
    let width = ui.width();
    ui.result(&diff, || ksmith_report::table::diff(&diff, width))?;
    Ok(ExitCode::Done)
}
