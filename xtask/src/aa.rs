//! The acceptance rates of the whole judge: gates, real workers, both stages.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use ksmith_judge::{Judge, JudgeOptions};
use ksmith_ledger::{Decision, Verdict};
use ksmith_machine::quiet;
use ksmith_task::{Backend, Candidate, Task};
use serde::Serialize;

use crate::{Failure, delay};

/// How often a verdict without a statement (a busy or noisy machine) is repeated; each one is listed.
const REPEATS: u32 = 3;

#[derive(Args)]
pub(crate) struct AaArgs {
    /// How many times to judge
    #[arg(long, default_value_t = 200)]
    count: u32,
    /// Begin no further judgement after so many seconds
    #[arg(long)]
    seconds: Option<f64>,
    /// Do not fail where this machine allows no statement at all; an accepted copy fails always
    #[arg(long)]
    noise_is_no_failure: bool,
    /// Task whose baseline is copied
    #[arg(long, default_value = "tasks/softmax")]
    task: PathBuf,
    /// File for the table; its lines of JSON go beside it
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct PowerArgs {
    /// How many times to judge at each length and saving
    #[arg(long, default_value_t = 20)]
    count: u32,
    /// Lengths of the baseline in microseconds
    #[arg(long, value_delimiter = ',', default_value = "20,100,500")]
    microseconds: Vec<u32>,
    /// Percents of the work that candidates save; 0 is a copy of the same bytes
    #[arg(long, value_delimiter = ',', default_value = "3,0")]
    saved: Vec<u32>,
    /// File for the table; its lines of JSON go beside it
    #[arg(long)]
    out: Option<PathBuf>,
}

/// One judgement, as it is kept.
#[derive(Debug, Clone, Serialize)]
struct Line {
    series: String,
    verdict: Decision,
    code: String,
    point: Option<f64>,
    lower: Option<f64>,
    pairs: u32,
    spread_percent: f64,
    confirmed_stages: u32,
    seconds: f64,
    bench_seconds: f64,
    other_cpus: Option<f64>,
}

/// Many judgements of one kind.
#[derive(Default)]
struct Series {
    lines: Vec<Line>,
}

impl Series {
    fn count(&self, decision: Decision) -> usize {
        self.lines.iter().filter(|line| line.verdict == decision).count()
    }

    fn judged(&self) -> usize {
        self.lines.len() - self.count(Decision::Ambiguous) - self.count(Decision::Error)
    }

    fn row(&self, name: &str) -> String {
        let mean =
            |of: fn(&Line) -> f64| self.lines.iter().map(of).sum::<f64>() / self.lines.len().max(1) as f64;
        let mut points: Vec<f64> = self.lines.iter().filter_map(|line| line.point).collect();
        points.sort_by(f64::total_cmp);
        let middle = points
            .get(points.len() / 2)
            .map_or(0.0, |point| (point - 1.0) * 100.0);
        format!(
            "| {name} | {} | {} | {} | {} | {} | {middle:+.2} % | {:.0} | {:.2} % | {:.2} | {:.2} |",
            self.judged(),
            self.count(Decision::Accept),
            self.count(Decision::Revise),
            self.count(Decision::Reject),
            self.count(Decision::Ambiguous) + self.count(Decision::Error),
            mean(|line| f64::from(line.pairs)),
            mean(|line| line.spread_percent),
            mean(|line| line.bench_seconds),
            mean(|line| line.seconds),
        )
    }
}

const HEAD: &str = "| series | judged | accepted | revise | rejected | no statement (repeated) | median gain | pairs | \
                    A/A spread | bench s | total s |\n|---|---|---|---|---|---|---|---|---|---|---|";

fn open(task: &Path, state: &Path) -> Result<Judge, Failure> {
    let task = Task::load(task)?;
    let instance = task
        .instances()
        .into_iter()
        .next()
        .ok_or("the task has no instance")?;
    Ok(Judge::open(&instance, JudgeOptions::new(state))?)
}

/// Judges until there is a statement, or `REPEATS` times.
fn judge(judge: &mut Judge, candidate: &Candidate, name: &str, series: &mut Series) {
    for _ in 0..REPEATS {
        let from = Instant::now();
        let verdict: Verdict = judge.score(candidate);
        let report = judge.report();
        let look = report.and_then(|report| report.decision.looks.last());
        let stages = report.map(|report| std::iter::once(&report.decision).chain(&report.confirmation));
        let line = Line {
            series: name.to_owned(),
            verdict: verdict.verdict,
            code: verdict.code.clone(),
            point: verdict.speedup.map(|speedup| speedup.point),
            lower: verdict.speedup.map(|speedup| speedup.lower),
            pairs: look.map_or(0, |look| look.pairs),
            spread_percent: look.map_or(0.0, |look| look.control_spread * 100.0),
            confirmed_stages: report.map_or(0, |report| u32::from(report.confirmation.is_some())),
            seconds: from.elapsed().as_secs_f64(),
            bench_seconds: stages.map_or(0.0, |stages| stages.map(|stage| stage.record.seconds).sum()),
            other_cpus: report.and_then(|report| report.decision.record.load.other_cpus),
        };
        eprintln!("{name}: {} in {:.1} s", line.code, line.seconds);
        let again = matches!(line.verdict, Decision::Ambiguous | Decision::Error);
        series.lines.push(line);
        if !again {
            return;
        }
    }
}

pub(crate) fn aa(args: &AaArgs) -> Result<ExitCode, Failure> {
    let state = tempfile::tempdir()?;
    let task = Task::load(&args.task)?;
    let baseline = task
        .contract()
        .baseline
        .get(&Backend::Cpu)
        .ok_or("the task names no CPU baseline")?;
    let copy = state.path().join("copy");
    delay::copy_candidate(&task.dir().join(baseline), &copy)?;
    let candidate = Candidate::load(&copy)?;
    let mut open = open(&args.task, state.path())?;
    let mut series = Series::default();
    let name = format!("{}, copy of the baseline", task.contract().name);
    let began = Instant::now();
    let in_time = || {
        args.seconds
            .is_none_or(|seconds| began.elapsed().as_secs_f64() < seconds)
    };
    for _ in (0..args.count).take_while(|_| in_time()) {
        judge(&mut open, &candidate, &name, &mut series);
    }
    let silent = series.judged() == 0 && args.noise_is_no_failure;
    let code = finish(&[(name, series)], args.out.as_deref(), "aa", |_, series| {
        series.count(Decision::Accept) == 0
    })?;
    if silent {
        println!(
            "No statement was possible on this machine: that is no failure here, and no evidence either."
        );
        return Ok(ExitCode::SUCCESS);
    }
    Ok(code)
}

pub(crate) fn power(args: &PowerArgs) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    for length in &args.microseconds {
        let state = tempfile::tempdir()?;
        let task = state.path().join("task");
        let steps = delay::steps(*length);
        delay::write_task(&task, steps)?;
        for saved in &args.saved {
            let mut open = open(&task, &state.path().join(format!("state{saved}")))?;
            let folder = state.path().join(format!("saves{saved}"));
            delay::write_candidate(&folder, steps * (100 - saved.min(&99)) / 100)?;
            let candidate = Candidate::load(&folder)?;
            let name = format!("{length} us, {saved} % less work");
            let mut series = Series::default();
            for _ in 0..args.count {
                judge(&mut open, &candidate, &name, &mut series);
            }
            all.push((name, series));
        }
    }
    finish(&all, args.out.as_deref(), "power", |name, series| {
        if name.ends_with(" 0 % less work") {
            series.count(Decision::Accept) == 0
        } else {
            series.count(Decision::Accept) * 100 >= series.judged() * 95
        }
    })
}

fn finish(
    all: &[(String, Series)],
    out: Option<&Path>,
    chore: &str,
    holds: impl Fn(&str, &Series) -> bool,
) -> Result<ExitCode, Failure> {
    let mut text = String::from(HEAD);
    for (name, series) in all {
        write!(text, "\n{}", series.row(name))?;
    }
    let met = all
        .iter()
        .all(|(name, series)| series.judged() > 0 && holds(name, series));
    let load = quiet::sample(quiet::WINDOW, &[]).describe();
    let count: usize = all.iter().map(|(_, series)| series.lines.len()).sum();
    let accepted: usize = all.iter().map(|(_, series)| series.count(Decision::Accept)).sum();
    write!(
        text,
        "\n\n{count} judgements, {accepted} accepted; criterion {}. {load}.\n",
        if met { "met" } else { "not met" }
    )?;
    println!("{text}");
    if let Some(out) = out {
        fs::write(
            out,
            format!("# Rates of the whole judge\n\n`cargo run --release -p xtask -- {chore}`\n\n{text}"),
        )?;
        let lines: Result<Vec<String>, _> = all
            .iter()
            .flat_map(|(_, series)| &series.lines)
            .map(serde_json::to_string)
            .collect();
        fs::write(out.with_extension("jsonl"), lines?.join("\n") + "\n")?;
    }
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
