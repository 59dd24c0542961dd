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
    let plan = plain_plan(settings());
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

fn settings() -> Settings {
    let mut settings = Settings::default();
    let get = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if let Some(value) = get("ROUNDS") {
        settings.rounds_per_set = value;
    }
    if let Some(value) = get("PAIRS") {
        settings.min_pairs = value;
    }
    if let Some(value) = get("SETS") {
        settings.min_sets = value;
    }
    if let Some(value) = get("CALLS") {
        settings.lane_calls = value;
    }
    if let Some(value) = get("LANE") {
        settings.lane_ns = u64::from(value);
    }
    settings
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
