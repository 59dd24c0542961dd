//! Removes each gate of the judge in turn: something must then get through.
//!
//! *Got through* means that no other gate rejects the cheat before `bench`. Where the gates overlap on purpose (early
//! exits, and walls behind tripwires) the table says which gate catches it instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ksmith_ledger::{Decision, Gate};

use super::corpus::{self, Cheat, Target};
use super::run::{self, Mode, Options};
use crate::Failure;

#[derive(Args)]
pub(crate) struct MutationArgs {
    /// Only this gate
    #[arg(long)]
    gate: Option<String>,
    /// File for the table
    #[arg(long, default_value = "docs/results/mutation.md")]
    out: PathBuf,
}

/// Gates that cannot be removed: without the library nothing can run, and screening crowns nobody.
const FIXED: [Gate; 2] = [Gate::Compile, Gate::Slow];
/// Early exits: their cases are easier ones of the gates behind them, so that a wrong kernel leaves before it costs much.
const EARLY: [Gate; 2] = [Gate::Smoke, Gate::Dev];

struct Row {
    gate: Gate,
    named: usize,
    through: Vec<String>,
    later: BTreeMap<String, usize>,
}

/// Whether a verdict means that the candidate reached the measurement.
fn reached_bench(decision: Decision, gate: Option<Gate>) -> bool {
    match decision {
        Decision::Accept | Decision::Revise | Decision::Ambiguous => true,
        Decision::Reject | Decision::Error => gate.is_some_and(|gate| gate >= Gate::Bench),
    }
}

pub(crate) fn mutation(args: &MutationArgs) -> Result<ExitCode, Failure> {
    let cheats = corpus::cheats(Path::new(super::CHEATS))?;
    let state = run::state()?;
    let mut rows = Vec::new();
    for gate in Gate::ALL {
        if args.gate.as_ref().is_some_and(|only| only != gate.name()) || FIXED.contains(&gate) {
            continue;
        }
        let own: Vec<&Cheat> = cheats.iter().filter(|cheat| cheat.gate == gate).collect();
        if own.is_empty() {
            continue;
        }
        let mut row = Row {
            gate,
            named: own.len(),
            through: Vec::new(),
            later: BTreeMap::new(),
        };
        let mut targets: BTreeMap<(Target, bool), Vec<&Cheat>> = BTreeMap::new();
        for cheat in own {
            targets
                .entry((cheat.target.clone(), cheat.full))
                .or_default()
                .push(cheat);
        }
        for ((target, full), cheats) in targets {
            let mut options = Options::new(if full { Mode::Full } else { Mode::Corpus });
            options.without = vec![gate];
            let mut judge = run::open(&target, state.path(), &options)?;
            for cheat in cheats {
                let (decision, code, at, _) = run::judge(&mut judge, &cheat.folder);
                let measured = if gate < Gate::Bench {
                    reached_bench(decision, at)
                } else {
                    decision != Decision::Reject
                };
                eprintln!(
                    "without {gate:12} {:24} {code}{}",
                    cheat.name,
                    if measured { "  THROUGH" } else { "" }
                );
                if measured {
                    row.through.push(cheat.name.clone());
                } else {
                    *row.later.entry(code).or_default() += 1;
                }
            }
        }
        rows.push(row);
    }
    if args.gate.is_none() {
        fs::write(&args.out, table(&rows))?;
    }
    let mut idle = 0;
    for row in &rows {
        idle += usize::from(row.through.is_empty() && !EARLY.contains(&row.gate));
        println!(
            "without {:12} {} of {} got through",
            row.gate.name(),
            row.through.len(),
            row.named
        );
    }
    println!("{idle} gates beside the early exits let nothing through when removed");
    Ok(if idle == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "# Mutation of the judge\n\n\
         Each gate was removed in turn and the cheats that name it were judged again (`cargo xtask mutation`). *Got\n\
         through*: no other gate rejects the cheat before `bench` (for gates from `bench` on: at all). Gates overlap on\n\
         purpose: `smoke` and `dev` are early exits in front of `hidden`, `policy` and `static` are tripwires in front\n\
         of the boxes. Where nothing gets through, the last column says what stands behind the gate. `compile` cannot be\n\
         removed (without a library nothing runs), nor `slow` (screening crowns nobody). Cheats against the statistics\n\
         are scored in full. With a gate removed no verdict is ever `accept`; the command line cannot remove one. The\n\
         command fails when a gate other than the early exits lets nothing through.\n\n\
         | gate removed | cheats that name it | got through | caught instead by |\n|---|---|---|---|\n",
    );
    for row in rows {
        let through: Vec<String> = row.through.iter().map(|name| format!("`{name}`")).collect();
        let later: Vec<String> = row
            .later
            .iter()
            .map(|(code, count)| format!("`{code}` {count}"))
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            row.gate,
            row.named,
            if through.is_empty() {
                "none".to_owned()
            } else {
                format!("{}: {}", through.len(), through.join(", "))
            },
            later.join(", "),
        );
    }
    text
}
