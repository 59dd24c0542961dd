//! `ksmith toolchain`

use clap::ValueEnum;
use ksmith_machine::{LocalHost, Toolchain, toolchain};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, place};
use crate::failure::Failure;
use crate::ui::Ui;

/// What can be fetched.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// NVIDIA's compilers, from its own Python wheels (about 300 MB)
    Cuda,
}

/// Find the CUDA compilers, or fetch them into a private folder
///
/// Needs no root and no GPU, and touches nothing outside the data folder. Without `--install` it only looks.
///
/// Example: ksmith toolchain cuda --install
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to look for
    #[arg(value_enum)]
    kind: Kind,
    /// Fetch what is missing
    #[arg(long)]
    install: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let Kind::Cuda = args.kind;
    let host = LocalHost::new();
    let data_dir = place::data_dir();
    if Toolchain::find(&host, &data_dir).is_none() && args.install {
        toolchain::install(&host, &data_dir, &mut |step| ui.note(step)).map_err(|error| {
            let failure = Failure::of(ExitCode::Environment, &error);
            match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
    }
    let found = Toolchain::find(&host, &data_dir).ok_or_else(|| {
        Failure::new(ExitCode::Environment, "no CUDA compilers on this machine")
            .hint("`ksmith toolchain cuda --install` fetches them into a private folder.")
    })?;
    ui.result(&json!({ "toolchain": found }), || {
        format!(
            "CUDA {} in {} ({})",
            found.version,
            found.root.display(),
            found.nvcc.display()
        )
    })?;
    Ok(ExitCode::Done)
}
