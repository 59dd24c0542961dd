//! Rates of the acceptance rule on models and on recorded A/A timings.
//!
//! `cargo run --release -p ksmith-judge --example rates -- 2000` prints the tables of `docs/results/statistics.md`.
#![expect(clippy::print_stdout, reason = "an example that prints tables")]

use std::error::Error;
use std::fs;
use std::path::Path;

use ksmith_judge::bench::Settings;
use ksmith_judge::bench::simulation::{Machine, Model, Rates, Recording, Source, plain_plan, simulate};

fn main() -> Result<(), Box<dyn Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let plan = plain_plan(Settings::default());
    println!("{HEAD}");
    for (name, machine) in [
        ("quiet", Machine::QUIET),
        ("bimodal", Machine::BIMODAL),
        ("loaded", Machine::LOADED),
        ("crowded", Machine::CROWDED),
    ] {
        for call_ns in [20e3, 100e3, 200e3, 500e3] {
            for saved in SAVED {
                let source = Source::Model(machine, Model::honest(call_ns, saved));
                row(
                    &format!("{name}, {} us", call_ns / 1e3),
                    saved,
                    simulate(source, &plan, count, 1).into(),
                );
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/aa");
    let mut files: Vec<_> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    println!("\n{HEAD}");
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "txt"))
    {
        let recording = Recording::from_text(&fs::read_to_string(file)?)?;
        for saved in SAVED {
            let tally = simulate(Source::Recording(&recording, saved), &plan, count, 1);
            row(
                &format!("{}, {} sets", recording.name, recording.sets()),
                saved,
                tally.into(),
            );
        }
    }
    Ok(())
}

const SAVED: [f64; 4] = [0.0, 0.01, 0.02, 0.03];

const HEAD: &str = "| source | saved | accepted | passed decision | no statement | pairs | seconds |\n\
                    |---|---|---|---|---|---|---|";

fn row(source: &str, saved: f64, rates: Rates) {
    println!(
        "| {source} | {:.0} % | {:.2} % | {:.2} % | {:.2} % | {:.0} | {:.2} |",
        saved * 100.0,
        rates.accepted * 100.0,
        rates.decided * 100.0,
        rates.unjudged * 100.0,
        rates.pairs,
        rates.seconds
    );
}
