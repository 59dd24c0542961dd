//! Rates of the acceptance rule on models and recorded A/A timings.
//!
//! `cargo run --release -p ksmith-judge --example rates -- 2000` prints the table of `docs/results/statistics.md`.
#![expect(clippy::print_stdout, reason = "an example that prints a table")]

use ksmith_judge::bench::Settings;
use ksmith_judge::bench::simulation::{Machine, Model, Rates, Source, plain_plan, simulate};

fn main() {
    let count: u32 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let plan = plain_plan(Settings::default());
    println!("| source | saved | accepted | passed decision | no statement | pairs | seconds |");
    println!("|---|---|---|---|---|---|---|");
    for (name, machine) in [
        ("quiet", Machine::QUIET),
        ("bimodal", Machine::BIMODAL),
        ("loaded", Machine::LOADED),
        ("crowded", Machine::CROWDED),
    ] {
        for call_ns in [20e3, 100e3, 200e3, 500e3] {
            for saved in [0.0, 0.03] {
                let model = Model::honest(call_ns, saved);
                let rates = Rates::from(simulate(Source::Model(machine, model), &plan, count, 1));
                row(&format!("{name}, {} us", call_ns / 1e3), saved, rates);
            }
        }
    }
}

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
