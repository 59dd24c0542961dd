//! The red team: every cheat must be rejected by the gate it names, no honest candidate may be.

mod corpus;
mod left;
mod mutation;
mod naive;
mod report;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ksmith_ledger::Gate;

pub(crate) use mutation::{MutationArgs, mutation};

use crate::Failure;

/// Where the corpora lie, relative to the repository's root.
const CHEATS: &str = "redteam/cheats";
const HONEST: &str = "redteam/honest";

#[derive(Args)]
pub(crate) struct RedteamArgs {
    /// Only candidates whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// Full scoring with bench, decision and confirmation; without it all gates at small shapes, one process set
    #[arg(long)]
    full: bool,
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
    let effort = if args.full {
        run::Mode::Full
    } else {
        run::Mode::Corpus
    };
    let without: Vec<Gate> = match &args.gate {
        None => Vec::new(),
        Some(only) => Gate::ALL.into_iter().filter(|gate| gate.name() != only).collect(),
    };
    let mut outcome = run::all(&cheats, &honest, effort, &without, args.naive)?;
    for _ in 1..args.repeat {
        outcome.add(run::all(&cheats, &honest, effort, &without, args.naive)?);
    }
    let whole = args.filter.is_none() && args.gate.is_none() && !args.honest_only && !args.cheats_only;
    let out = args
        .out
        .clone()
        .or(whole.then(|| PathBuf::from("docs/results/redteam.md")));
    if let Some(out) = out {
        report::write(&out, &outcome, effort)?;
    }
    report::families(&outcome);
    println!("{}", outcome.last_line());
    Ok(if outcome.good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
