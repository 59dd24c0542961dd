//! `ksmith lint`

use std::fmt::Write as _;
use std::path::PathBuf;

use ksmith_task::ExitCode;
use ksmith_task::lint::{Severity, lint};
use serde_json::json;

use super::Outcome;
use crate::ui::Ui;

/// Check a contract and say with which command each of its conditions is checked
///
/// Prints findings, the acceptance conditions with their exact commands, and what one scoring costs. `--audit` also
/// runs the task's own audit: candidates that must fail, the baseline that must pass. Exit 2 if the contract cannot be
/// used.
///
/// Example: ksmith lint tasks/softmax --full
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task's folder or its task.toml
    task: PathBuf,
    /// Print the expanded contract, which is what a run locks
    #[arg(long)]
    full: bool,
    /// Compile and run the task's own audit as well
    #[arg(long)]
    audit: bool,
    /// With --audit: run without a sandbox where the kernel gives none
    #[arg(long, requires = "audit")]
    unsandboxed: bool,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let task = ksmith_loop::load(&args.task)?;
    let report = lint(&task);
    let audits = if args.audit && report.passes() {
        ui.note("auditing the task; this compiles and runs candidates");
        ksmith_loop::audit(&task, super::run::sandbox(args.unsandboxed))?
    } else {
        Vec::new()
    };
    let passed = report.passes() && audits.iter().all(|(_, audit)| audit.passed);
    let full = args.full.then(|| task.full());
    let value = json!({
        "passed": passed,
        "findings": report.findings,
        "acceptance": if report.passes() { report.acceptance.as_slice() } else { &[] },
        "scoring": report.scoring,
        "audit": audits.iter().map(|(instance, audit)| json!({ "instance": instance, "audit": audit })).collect::<Vec<_>>(),
        "contract": full,
    });
    ui.result(&value, || {
        let mut text = String::new();
        if let Some(full) = &full {
            let _ = writeln!(text, "{}\n", full.trim_end());
        }
        for finding in &report.findings {
            let word = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let _ = writeln!(text, "{word}: {}: {}", finding.key, finding.message);
            if let Some(help) = &finding.help {
                let _ = writeln!(text, "  help: {help}");
            }
        }
        if !report.passes() {
            let _ = writeln!(text, "The contract cannot be used as it stands.");
            return text;
        }
        let _ = writeln!(text, "Accepted when:");
        for condition in &report.acceptance {
            let _ = writeln!(text, "- {}\n    {}", condition.condition, condition.command);
        }
        for cost in &report.scoring {
            let _ = writeln!(
                text,
                "One scoring of {}: {} cases, {:.1} MB, about {:.1} s.",
                cost.instance,
                cost.cases,
                cost.bytes / 1e6,
                cost.seconds
            );
        }
        for (instance, audit) in &audits {
            let word = if audit.passed {
                "passes its own audit"
            } else {
                "FAILS ITS OWN AUDIT"
            };
            let _ = writeln!(text, "{instance} {word}.");
            for finding in &audit.findings {
                let _ = writeln!(text, "- {}", ksmith_report::clean_line(finding));
            }
        }
        text
    })?;
    Ok(if passed { ExitCode::Done } else { ExitCode::Usage })
}
