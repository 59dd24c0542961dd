//! The grammar of the command line.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::commands;

/// Write fast kernels and prove them
///
/// A task states a contract; a writer proposes candidates; the judge decides; the ledger remembers.
///
/// Exit codes: 0 done or accepted; 1 judged and not accepted, or goal not met; 2 bad usage or contract; 3 the
/// environment lacks something; 4 a contract, record or protected file changed; 5 internal fault; 130 interrupted,
/// resumable.
///
/// Example: ksmith run tasks/softmax
#[derive(Debug, Parser)]
#[command(name = "ksmith", version, max_term_width = 100, styles = styles(), help_expected = true)]
pub(crate) struct Cli {
    /// Print one JSON object on standard output; logs go to standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress and no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default())
        .placeholder(AnsiColor::Cyan.on_default())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Doctor(commands::doctor::Args),
    New(commands::new::Args),
    Lint(commands::lint::Args),
    Abi(commands::abi::Args),
    Review(commands::review::Args),
    Run(commands::run::Args),
    Resume(commands::resume::Args),
    Check(commands::check::Args),
    Test(commands::test::Args),
    Bench(commands::bench::Args),
    Judge(commands::judge::Args),
    Log(commands::log::Args),
    Show(commands::show::Args),
    Diff(commands::diff::Args),
    Report(commands::report::Args),
    Verify(commands::verify::Args),
    Export(commands::export::Args),
    Toolchain(commands::toolchain::Args),
    Completions(commands::completions::Args),
}
