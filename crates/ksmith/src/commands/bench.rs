//! `ksmith bench`

use std::fmt::Write as _;

use ksmith_ledger::History;
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, judge};
use crate::failure::Failure;
use crate::live::show_gain;
use crate::ui::Ui;

/// Measure a candidate against the task's baseline
///
/// Judges the candidate as `ksmith judge` does (a time without a proof does not exist) and shows the times of every
/// arm. Exit 0 if it was measured, 1 if a gate failed before that.
///
/// Example: ksmith bench my-kernel --task tasks/softmax
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    #[command(flatten)]
    judge: judge::Args,
}

pub(crate) fn run(args: &Args, ui: &mut Ui) -> Outcome {
    let judged = judge::judge(&args.judge, ui)?;
    let history = History::load(&judged.dir).map_err(|error| Failure::of(ExitCode::Changed, &error))?;
    let bench = history
        .candidates
        .last()
        .and_then(|candidate| candidate.bench())
        .cloned();
    let value = json!({
        "run": judged.run,
        "code": judged.verdict.as_ref().map(|verdict| &verdict.code),
        "bench": bench,
        "scope": history.opened.scope,
        "scope_note": history.opened.scope_note,
    });
    ui.result(&value, || {
        let mut text = String::new();
        match &bench {
            None => {
                let code = judged
                    .verdict
                    .as_ref()
                    .map_or("interrupted", |verdict| verdict.code.as_str());
                let _ = writeln!(text, "not measured ({code})");
            }
            Some(bench) => {
                for time in &bench.times {
                    let _ = writeln!(
                        text,
                        "{:<16} {:<12} median {:>10.1} us, 10 % {:>10.1}, 90 % {:>10.1}, {} calls",
                        time.workload,
                        time.arm.name(),
                        time.median_us,
                        time.p10_us,
                        time.p90_us,
                        time.calls
                    );
                }
                for (name, gain) in [("baseline", bench.over_baseline), ("A/A control", bench.control)] {
                    if let Some(gain) = gain {
                        let _ = writeln!(text, "{name}: {}", show_gain(gain));
                    }
                }
                let _ = writeln!(text, "{} pairs in {} process sets", bench.pairs, bench.sets);
            }
        }
        let _ = writeln!(text, "run {}. {}", judged.run, history.opened.scope_note);
        text
    })?;
    Ok(if bench.is_some() {
        ExitCode::Done
    } else {
        ExitCode::NotAccepted
    })
}
