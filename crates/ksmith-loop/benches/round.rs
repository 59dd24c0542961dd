//! What a round of a run costs besides model, compiler and judge: brief, desk, box, gateway, records, gates, review by
//! rules, promotion. The judge is that of the tests, which takes no time, and the agent a shell script or a scripted
//! model on this machine, whose own time is counted with ours. The bound is 50 ms (issue "Writers and reviewers").
//!
//! A run has a beginning and an end; two runs of different length leave only the rounds between them.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking and prints what it found"
)]

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../tests/loop/scripted.rs"]
mod scripted;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use ksmith_agents::gateway::{Endpoint, Wire};
use ksmith_ledger::History;
use ksmith_loop::{RunOptions, Silent, WriterChoice, run_with};
use ksmith_scripted::{Action, Options, Script, ScriptedServer, Turn};
use scripted::{Home, Mixed, Round};
use serde_json::json;

const SHORT: u64 = 5;
const LONG: u64 = 45;
const REPEATS: usize = 5;

/// Milliseconds of a run with this many rounds.
fn run(rounds: u64, prepare: &dyn Fn(&mut RunOptions, &Home)) -> f64 {
    let home = Home::new();
    let mut options = home.options();
    // The flag control takes a scoring of its own.
    options.candidates = Some(rounds + 1);
    prepare(&mut options, &home);
    let script: Vec<Round> = (0..rounds)
        .map(|number| {
            let text: &'static str = Box::leak(format!("c{number} speed {}.5", number + 2).into_boxed_str());
            let direction: &'static str = Box::leak(format!("direction-{number}").into_boxed_str());
            let texts: &'static [&'static str] = Box::leak(vec![text].into_boxed_slice());
            (direction, texts)
        })
        .collect();
    let workshop = Mixed(scripted::Script::new(Box::leak(script.into_boxed_slice())));
    let began = Instant::now();
    let outcome = run_with(&options, &workshop, &mut Silent).unwrap();
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let history = History::load(&outcome.instances[0].dir).unwrap();
    let round = history.champion().unwrap().proposed.round;
    assert_eq!(u64::from(round), rounds + 1, "a round without a gain");
    ms
}

fn report(name: &str, prepare: &dyn Fn(&mut RunOptions, &Home)) {
    let mut found: Vec<f64> = (0..REPEATS)
        .map(|_| (run(LONG, prepare) - run(SHORT, prepare)) / (LONG - SHORT) as f64)
        .collect();
    found.sort_by(f64::total_cmp);
    println!(
        "{name:<36} {:>6.1} ms a round ({:.1} to {:.1})",
        found[REPEATS / 2],
        found[0],
        found[REPEATS - 1]
    );
}

/// Doubles the speed that stands in the candidate.
const AGENT: &str = r#"#!/bin/bash
speed=$(sed -n 's/.*speed \([0-9]*\).*/\1/p' candidate/kernel.c | head -n 1)
speed=$((${speed:-1} + 1))
printf '#pragma script speed %s\nvoid softmax(void) {}\n' "$speed" > candidate/kernel.c
printf 'hypothesis = "speed %s"\ndirection = "direction-%s"\npredicted_gain = 1.5\n' "$speed" "$speed" > proposal.toml
"#;

fn main() {
    ksmith_loop::intercept();
    report("the loop alone", &|_, _| {});
    let agent = |options: &mut RunOptions, home: &Home| {
        let path = home.folder.path().join("agent.sh");
        std::fs::write(&path, AGENT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        options.writer = WriterChoice::Cli(path.display().to_string());
    };
    report("a command line in its box", &agent);
    let turns = (1..=LONG).rev().map(|number| {
        let kernel = format!("#pragma script speed {}.5\nvoid softmax(void) {{}}\n", number + 1);
        let note = format!("hypothesis = \"speed {number}\"\ndirection = \"direction-{number}\"\n");
        let write = |path: &str, text: &str| Action::call("write", json!({ "path": path, "text": text }));
        let turn = Turn::calls([
            write("candidate/kernel.c", &kernel),
            write("proposal.toml", &note),
        ]);
        let turn = turn.after_results(0);
        // The latest round that the brief tells of.
        if number == 1 {
            turn
        } else {
            turn.if_contains(format!("(direction-{})", number - 1))
        }
    });
    let script = Script::new(turns.chain([Turn::text("Done.").after_results(2)]));
    let server = ScriptedServer::start(Options::new(script)).unwrap();
    let model = |options: &mut RunOptions, _: &Home| {
        options.agents.endpoint = Endpoint {
            url: Some(format!("{}/v1", server.url())),
            wire: Some(Wire::Chat),
            key_env: None,
        };
        options.writer = WriterChoice::Api("some-model".into());
    };
    report("a model, two calls over the gateway", &model);
}
