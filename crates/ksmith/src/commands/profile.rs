//! `ksmith profile`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_report::clean_line;
use ksmith_task::ExitCode;

use super::Outcome;
use crate::failure::Failure;
use crate::ui::Ui;

/// Read a CPU candidate's machine code: vector width, spills, calls in hot loops, and a model of its inner loop
///
/// Nothing is run: the figures are a model of the code and say so. Hints for whoever writes kernels, never evidence.
///
/// Example: ksmith profile my-kernel
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The candidate's folder
    candidate: PathBuf,
    /// Compile without a sandbox where the kernel gives none
    #[arg(long)]
    unsandboxed: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let sandbox = super::run::sandbox(args.unsandboxed);
    let outcome = ksmith_loop::profile(&args.candidate, sandbox)?.map_err(|refusal| {
        Failure::new(
            ExitCode::NotAccepted,
            format!(
                "the candidate does not compile: {}",
                ksmith_report::clean(&refusal)
            ),
        )
    })?;
    ui.result(&outcome, || {
        let mut text = String::new();
        match &outcome.profile {
            Some(profile) => {
                let _ = writeln!(text, "{}", profile.line());
            }
            None => {
                let _ = writeln!(
                    text,
                    "no model: the entry symbol has no inner loop that could be read"
                );
            }
        }
        for finding in &outcome.findings {
            let _ = writeln!(
                text,
                "- {} {}: {}",
                finding.id,
                clean_line(&finding.subject),
                clean_line(&finding.evidence)
            );
            if let Some(advice) = &finding.advice {
                let _ = writeln!(text, "    {}", clean_line(advice));
            }
        }
        for gap in &outcome.incomplete {
            let _ = writeln!(text, "not seen: {}", clean_line(gap));
        }
        text
    })?;
    Ok(ExitCode::Done)
}
