//! One file per command: an `Args` struct whose doc is the help, and one `run`.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod export;
pub(crate) mod judge;
pub(crate) mod log;
pub(crate) mod place;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod summary;
pub(crate) mod test;
pub(crate) mod verify;

use ksmith_task::ExitCode;

use crate::cli::Command;
use crate::failure::Failure;
use crate::ui::Ui;

/// What every command gives back.
pub(crate) type Outcome = Result<ExitCode, Failure>;

pub(crate) fn dispatch(command: Command, ui: &mut Ui) -> Outcome {
    match command {
        Command::Run(args) => run::run(&args, ui),
        Command::Resume(args) => resume::run(&args, ui),
        Command::Judge(args) => judge::run(&args, ui),
        Command::Check(args) => check::run(&args, ui),
        Command::Test(args) => test::run(&args, ui),
        Command::Bench(args) => bench::run(&args, ui),
        Command::Log(args) => log::run(&args, ui),
        Command::Show(args) => show::run(&args, ui),
        Command::Verify(args) => verify::run(&args, ui),
        Command::Export(args) => export::run(&args, ui),
        Command::Completions(args) => completions::run(&args, ui),
    }
}
