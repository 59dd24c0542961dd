//! `ksmith bench`

use std::fmt::Write as _;

use ksmith_ledger::{Decision, History};
use ksmith_task::ExitCode;
use serde_json::json;

use super::{Outcome, judge};
use crate::failure::Failure;
use crate::live::show_gain;
use crate::ui::Ui;

/// Measure a candidate against the task's baseline
///
/// Judges the candidate as `ksmith judge` does (a time without a proof does not exist) and shows the times of every
/// arm. Exit 0 if the confirmed time ratio to the baseline meets the task's goal, 1 if it does not or a gate failed, 3 if
/// this machine allows no statement.
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
    // Figures of a machine that allowed no statement are none.
    let bench = history
        .candidates
        .last()
        .filter(|candidate| !candidate.is_unstated())
        .and_then(|candidate| candidate.bench())
        .cloned();
    let goal = history.opened.goal;
    // The bound that counts is that of a confirmed verdict.
    let confirmed = judged
        .verdict
        .as_ref()
        .filter(|verdict| verdict.verdict == Decision::Accept)
        .and_then(|verdict| verdict.over_baseline);
    let met = confirmed.is_some_and(|gain| gain.lower >= 1.0 / goal);
    let value = json!({
        "run": judged.run,
        "code": judged.verdict.as_ref().map(|verdict| &verdict.code),
        "bench": bench,
        "goal": { "ratio": goal, "met": met },
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
        let _ = writeln!(
            text,
            "goal: at most {goal:.2} of the baseline's time, confirmed: {}",
            if met { "met" } else { "not met" }
        );
        if let Some(verdict) = &judged.verdict {
            judge::explain(verdict, &mut text);
            let _ = writeln!(text);
        }
        let _ = writeln!(text, "run {}. {}", judged.run, history.opened.scope_note);
        text
    })?;
    Ok(match judge::exit_code(judged.verdict.as_ref()) {
        ExitCode::Done if !met => ExitCode::NotAccepted,
        code => code,
    })
}
