//! One file per command: an `Args` struct whose doc is the help, and one `run`.

pub(crate) mod abi;
pub(crate) mod answer;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod judge;
pub(crate) mod kda;
pub(crate) mod know;
pub(crate) mod lint;
pub(crate) mod log;
pub(crate) mod lore;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod place;
pub(crate) mod postmortem;
pub(crate) mod probe_kernel;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod review;
pub(crate) mod reviewing;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod summary;
pub(crate) mod test;
pub(crate) mod tool;
pub(crate) mod toolchain;
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
        Command::Answer(args) => answer::run(&args, ui),
        Command::Profile(args) => profile::run(&args, ui),
        Command::Judge(args) => judge::run(&args, ui),
        Command::Check(args) => check::run(&args, ui),
        Command::Test(args) => test::run(&args, ui),
        Command::Bench(args) => bench::run(&args, ui),
        Command::Log(args) => log::run(&args, ui),
        Command::Show(args) => show::run(&args, ui),
        Command::Verify(args) => verify::run(&args, ui),
        Command::Export(args) => export::run(&args, ui),
        Command::Abi(args) => abi::run(&args, ui),
        Command::Diff(args) => diff::run(&args, ui),
        Command::Doctor(args) => doctor::run(&args, ui),
        Command::Lint(args) => lint::run(&args, ui),
        Command::New(args) => new::run(&args, ui),
        Command::Report(args) => report::run(&args, ui),
        Command::Know(args) => know::run(&args, ui),
        Command::Lore(args) => lore::run(&args, ui),
        Command::Kda(args) => kda::run(&args, ui),
        Command::Postmortem(args) => postmortem::run(&args, ui),
        Command::Review(args) => review::run(&args, ui),
        Command::Tool(args) => tool::run(&args, ui),
        Command::Mcp(args) => mcp::run(&args, ui),
        Command::Toolchain(args) => toolchain::run(&args, ui),
        Command::Completions(args) => completions::run(&args, ui),
        Command::ProbeKernel(args) => probe_kernel::run(&args),
    }
}
