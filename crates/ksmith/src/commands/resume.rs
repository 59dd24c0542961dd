//! `ksmith resume`

use ksmith_loop::ResumeOptions;

use super::{Outcome, place, summary};
use crate::live::Live;
use crate::signals;
use crate::ui::Ui;

/// Go on with an interrupted run
///
/// Reads the record, checks that nothing locked has changed since (exit 4 if it has), and does the next step. No
/// finished step is repeated. A run that is closed only gets its report and views written anew.
///
/// Example: ksmith resume 3f07
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run id, a unique prefix of one, or the path of a run folder
    run: String,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let options = ResumeOptions {
        run: place::find(&args.run)?.dir,
        home: place::home(),
        agent_host: place::agent_host(ui),
        interrupt: signals::interrupt()?,
        command: place::command(),
        signing_key: place::signing_key(),
    };
    let mut live = Live::new(ui);
    let outcome = ksmith_loop::resume(&options, &mut live);
    live.finish();
    summary::show(&outcome?, ui)
}
