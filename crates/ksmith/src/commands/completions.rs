//! `ksmith completions`

use clap::CommandFactory as _;
use ksmith_task::ExitCode;

use super::Outcome;
use crate::cli::Cli;
use crate::ui::Ui;

/// Print a completion script for a shell
///
/// Example: ksmith completions bash > ~/.local/share/bash-completion/completions/ksmith
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ksmith", &mut script);
    ui.text(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Done)
}
