//! The command line: arguments in, tables out; no logic.

mod approve;
mod cli;
mod commands;
mod duration;
mod failure;
mod live;
#[cfg(test)]
mod named_commands;
mod numbers;
mod signals;
mod ui;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    ksmith_loop::intercept();
    let cli = cli::Cli::parse();
    let mut ui = ui::Ui::new(cli.json, cli.quiet);
    match commands::dispatch(cli.command, &mut ui) {
        Ok(code) => code.into(),
        Err(failure) => ui.failure(&failure).into(),
    }
}
