//! How well the offline agent's strategy does on recorded spaces, out of sample.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ksmith_search::{Cache, Validation};

use crate::Failure;

#[derive(Args)]
pub(crate) struct SpacesArgs {
    /// Recorded configurations, one line of JSON each; a user's own `.ksmith/tuner.jsonl` will do
    #[arg(long, default_value = "crates/ksmith-search/testdata/spaces.jsonl")]
    spaces: PathBuf,
    /// Spaces of fewer configurations are left out
    #[arg(long, default_value_t = 24)]
    least: usize,
    /// Evaluations that a search may use
    #[arg(long, default_value_t = 40)]
    evaluations: usize,
    /// Configurations per round
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Searches that each figure is averaged over
    #[arg(long, default_value_t = 20)]
    searches: u64,
    /// File for the table
    #[arg(long)]
    out: Option<PathBuf>,
}

pub(crate) fn spaces(args: &SpacesArgs) -> Result<ExitCode, Failure> {
    let cache = Cache::read(&args.spaces)?;
    let seeds: Vec<u64> = (0..args.searches).collect();
    let found = Validation::leave_one_out(cache.entries(), args.least, args.evaluations, args.batch, &seeds);
    if found.spaces.is_empty() {
        return Err(format!(
            "`{}` holds no space of {} configurations with different times",
            args.spaces.display(),
            args.least
        )
        .into());
    }
    let mut text = String::from("# The search on recorded spaces\n\n");
    let _ = writeln!(
        text,
        "`cargo xtask spaces`: {} spaces, {} evaluations in batches of {}, mean of {} searches each. \
         P = (random - best) / (random - optimum), averaged over the evaluations; 0 is uniform random choice (its exact \
         expectation), 1 the optimum at once. The strategy's settings are chosen on all other spaces. *Without prior* \
         gives every configuration the same predicted time, so that nothing written by hand helps; *with transfer* begins \
         with what other tasks of the family were best at. Recorded on a CPU; no statement about GPU performance.\n",
        found.spaces.len(),
        args.evaluations,
        args.batch,
        args.searches
    );
    text.push_str(
        "| space | configurations | P, held out | best / optimum | without prior | with transfer | settings |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for space in &found.spaces {
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.3} | {:.2} | {:.2} | {} |",
            space.name,
            space.configs,
            space.score,
            space.ratio,
            space.without_prior,
            space.with_transfer,
            space.settings
        );
    }
    let _ = writeln!(
        text,
        "| **mean** | | **{:.2}** | {:.3} | {:.2} | {:.2} | |",
        found.mean(|space| space.score),
        found.mean(|space| space.ratio),
        found.mean(|space| space.without_prior),
        found.mean(|space| space.with_transfer)
    );
    print!("{text}");
    if let Some(out) = &args.out {
        std::fs::write(out, &text)?;
    }
    Ok(ExitCode::SUCCESS)
}
