//! The red team: every cheat must be rejected by the gate it names, no honest candidate may be.

mod corpus;
mod left;
mod mutation;
mod naive;
mod report;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ksmith_ledger::Gate;

pub(crate) use mutation::{MutationArgs, mutation};

use crate::Failure;

/// Candidates at a time in the short form.
const SHORT_JOBS: usize = 2;
/// The short form begins nothing after this.
const SHORT_LIMIT: Duration = Duration::from_secs(180);

/// Where the corpora lie, relative to the repository's root.
const CHEATS: &str = "redteam/cheats";
const HONEST: &str = "redteam/honest";

#[derive(Args)]
pub(crate) struct RedteamArgs {
    /// Only candidates whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// Full scoring with bench, decision and confirmation; without it all gates at small shapes, one process set
    #[arg(long, conflicts_with = "short")]
    full: bool,
    /// For continuous integration: two candidates at a time, only what is timed alone, four minutes at most
    #[arg(long)]
    short: bool,
    /// Leave the cheats out
    #[arg(long, conflicts_with = "cheats_only")]
    honest_only: bool,
    /// Leave the honest candidates out
    #[arg(long)]
    cheats_only: bool,
    /// Also run each cheat through the naive evaluator and compare with what its file says
    #[arg(long)]
    naive: bool,
    /// Judge everything so many times
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Run only this gate, after `compile`
    #[arg(long)]
    gate: Option<String>,
    /// File for the table; without a filter the default is `docs/results/redteam.md`
    #[arg(long)]
    out: Option<PathBuf>,
}

pub(crate) fn redteam(args: &RedteamArgs) -> Result<ExitCode, Failure> {
    let keep = |name: &str| {
        args.filter
            .as_ref()
            .is_none_or(|filter| name.contains(filter.as_str()))
    };
    let mut cheats = corpus::cheats(Path::new(CHEATS))?;
    let mut honest = corpus::honest(Path::new(HONEST))?;
    cheats.retain(|cheat| keep(&cheat.name) && !args.honest_only);
    honest.retain(|candidate| keep(&candidate.name) && !args.cheats_only);
    let mode = if args.full {
        run::Mode::Full
    } else {
        run::Mode::Corpus
    };
    // What only the statistics see cannot be caught without them.
    let all = cheats.len();
    cheats.retain(|cheat| args.full || !cheat.full);
    let full_only = all - cheats.len();
    let mut options = run::Options::new(mode);
    options.naive = args.naive;
    if let Some(only) = &args.gate {
        options.without = Gate::ALL.into_iter().filter(|gate| gate.name() != only).collect();
    }
    if args.short {
        options.jobs = SHORT_JOBS;
        options.limit = Some(SHORT_LIMIT);
    }
    let mut outcome = run::all(&cheats, &honest, &options)?;
    for _ in 1..args.repeat {
        outcome.add(run::all(&cheats, &honest, &options)?);
    }
    let whole =
        args.filter.is_none() && args.gate.is_none() && !args.honest_only && !args.cheats_only && !args.short;
    let out = args
        .out
        .clone()
        .or(whole.then(|| PathBuf::from("docs/results/redteam.md")));
    if let Some(out) = out {
        report::write(&out, &outcome, mode)?;
    }
    report::families(&outcome);
    if full_only > 0 {
        println!("{full_only} cheats need the statistics of --full and were not run");
    }
    if outcome.not_run > 0 {
        println!("{} candidates were not run: the time limit", outcome.not_run);
    }
    if outcome.left_behind > 0 {
        println!("{} processes were left behind", outcome.left_behind);
    }
    println!("{:.0} s", outcome.seconds);
    println!("{}", outcome.last_line());
    Ok(if outcome.good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
