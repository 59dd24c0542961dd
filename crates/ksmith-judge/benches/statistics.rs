//! What the rule itself costs: bounds of one look, and a whole simulated judgement without workers.

use ksmith_judge::bench::Settings;
use ksmith_judge::bench::simulation::{Machine, Model, Source, plain_plan, simulate};
use ksmith_judge::statistics::{median_bounds, rejecting_alpha};

fn main() {
    divan::main();
}

#[divan::bench]
fn bounds_of_120_pairs(bencher: divan::Bencher<'_, '_>) {
    let pair = |at: u32| f64::from(at * 7919 % 101) / 1e4;
    let sets: Vec<Vec<f64>> = (0..10)
        .map(|set| (0..12).map(|round| pair(set * 12 + round)).collect())
        .collect();
    bencher.bench(|| median_bounds(divan::black_box(&sets), rejecting_alpha(0.01, 0)));
}

#[divan::bench(args = [0.0, 0.03])]
fn simulated_judgement(bencher: divan::Bencher<'_, '_>, saved: f64) {
    let plan = plain_plan(Settings::default());
    let source = Source::Model(Machine::BIMODAL, Model::honest(100e3, saved));
    bencher.bench(|| simulate(source, &plan, 1, 1));
}
