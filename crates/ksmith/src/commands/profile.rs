//! `ksmith profile`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ksmith_loop::Finding;
use ksmith_report::{clean, clean_line};
use ksmith_task::ExitCode;

use super::Outcome;
use crate::failure::Failure;
use crate::ui::Ui;

/// Read a CPU candidate's machine code, or a profile that Nsight Compute made
///
/// Of a candidate: vector width, spills, calls in hot loops, and a model of its inner loop; nothing is run, and the
/// figures say that they are a model; last comes one next edit. With `--import`: six dimensions read by rules, and a digest of at most 2 KiB that
/// ends in one next edit. Hints for whoever writes kernels, never evidence.
///
/// Example: ksmith profile --import profile.csv
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The candidate's folder
    #[arg(required_unless_present = "import", conflicts_with = "import")]
    candidate: Option<PathBuf>,
    /// A report of Nsight Compute: its raw page as CSV (`ncu --csv --page raw`), or an `.ncu-rep` file
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
    /// With --import: the kernel to read [default: the one that took longest]
    #[arg(long, value_name = "NAME", requires = "import")]
    kernel: Option<String>,
    /// Compile without a sandbox where the kernel gives none
    #[arg(long)]
    unsandboxed: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    match (&args.import, &args.candidate) {
        (Some(file), _) => import(file, args.kernel.as_deref(), ui),
        (None, Some(candidate)) => model(candidate, args.unsandboxed, ui),
        (None, None) => Err(Failure::usage(
            "name a candidate's folder, or a report with `--import`",
        )),
    }
}

fn import(file: &Path, kernel: Option<&str>, ui: &mut Ui) -> Outcome {
    let imported = ksmith_loop::import_profile(file, kernel)?;
    ui.result(&imported, || {
        let mut text = clean(&imported.digest.text);
        if imported.kernels.len() > 1 {
            let others = imported.kernels.join(", ");
            let _ = write!(
                text,
                "\nThe report holds {} kernels; `--kernel NAME` reads another: {}",
                imported.kernels.len(),
                clean_line(&others)
            );
        }
        text
    })?;
    Ok(ExitCode::Done)
}

fn model(candidate: &Path, unsandboxed: bool, ui: &mut Ui) -> Outcome {
    let sandbox = super::run::sandbox(unsandboxed);
    let outcome = ksmith_loop::profile(candidate, sandbox)?.map_err(|refusal| {
        Failure::new(
            ExitCode::NotAccepted,
            format!("the candidate does not compile: {}", clean(&refusal)),
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
        for (finding, places) in grouped(&outcome.findings) {
            let at = match places.as_slice() {
                [] => String::new(),
                places => format!(" at {}", places.join(", ")),
            };
            let _ = writeln!(
                text,
                "- {} {}{}: {}",
                finding.id,
                clean_line(&finding.subject),
                clean_line(&at),
                clean_line(&finding.evidence)
            );
            if let Some(advice) = &finding.advice {
                let _ = writeln!(text, "    {}", clean_line(advice));
            }
        }
        for gap in &outcome.incomplete {
            let _ = writeln!(text, "not seen: {}", clean_line(gap));
        }
        let _ = match next(&outcome.findings) {
            Some(finding) => writeln!(
                text,
                "Next edit: {} ({})",
                clean_line(finding.advice.as_deref().unwrap_or_default()),
                finding.id
            ),
            None => writeln!(
                text,
                "Next edit: none that the machine code alone suggests; `ksmith bench` measures."
            ),
        };
        text
    })?;
    Ok(ExitCode::Done)
}

/// Findings that say the same of one function, once, with every place.
fn grouped(findings: &[Finding]) -> Vec<(&Finding, Vec<&str>)> {
    let mut groups: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for finding in findings {
        let same = |(other, _): &&mut (&Finding, Vec<&str>)| {
            (&other.id, &other.subject, &other.evidence) == (&finding.id, &finding.subject, &finding.evidence)
        };
        let place = finding.place.as_deref();
        match groups.iter_mut().find(same) {
            Some((_, places)) => places.extend(
                place
                    .filter(|place| !places.contains(place))
                    .into_iter()
                    .collect::<Vec<_>>(),
            ),
            None => groups.push((finding, place.into_iter().collect())),
        }
    }
    groups
}

/// The finding that matters most among those with advice; of equals the first.
fn next(findings: &[Finding]) -> Option<&Finding> {
    let advised = findings.iter().filter(|finding| finding.advice.is_some());
    advised.rev().max_by_key(|finding| finding.severity)
}
