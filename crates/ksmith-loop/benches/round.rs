//! What a round of a run costs besides model, compiler and judge: brief, desk, box, probes, gateway, records, gates,
//! review by rules or by a model, promotion. The judge is that of the tests, which takes no time, and the agent a shell
//! script or a scripted model on this machine, whose own time is counted with ours. The bound is 50 ms (issue "Writers
//! and reviewers"); beyond it in the median, the benchmark fails.
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
use ksmith_loop::{ReviewerChoice, RunOptions, Silent, WriterChoice, run_with};
use ksmith_scripted::{Action, Options, Script, ScriptedServer, Turn};
use scripted::{Home, Mixed, Round};
use serde_json::json;

const SHORT: u64 = 5;
const LONG: u64 = 45;
const REPEATS: usize = 5;
const BOUND_MS: f64 = 50.0;

/// Milliseconds of a run with this many rounds.
fn run(rounds: u64, prepare: &dyn Fn(&mut RunOptions, &Home)) -> f64 {
    let home = Home::new();
    let mut options = home.options();
    // The first round is the flag control's, which needs no scoring.
    options.candidates = Some(rounds);
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

/// Prints what a round costs; whether that is within the bound.
fn report(name: &str, prepare: &dyn Fn(&mut RunOptions, &Home)) -> bool {
    let mut found: Vec<f64> = (0..REPEATS)
        .map(|_| (run(LONG, prepare) - run(SHORT, prepare)) / (LONG - SHORT) as f64)
        .collect();
    found.sort_by(f64::total_cmp);
    let is_within = found[REPEATS / 2] <= BOUND_MS;
    println!(
        "{name:<44} {:>6.1} ms a round ({:.1} to {:.1}); bound {BOUND_MS}: {}",
        found[REPEATS / 2],
        found[0],
        found[REPEATS - 1],
        if is_within { "within" } else { "BEYOND" }
    );
    is_within
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
    let mut within = report("the loop alone", &|_, _| {});
    let agent = |options: &mut RunOptions, home: &Home| {
        let path = home.folder.path().join("agent.sh");
        std::fs::write(&path, AGENT).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        options.writer = WriterChoice::Cli(path.display().to_string());
        // With it the probes are offered on their socket.
        options.agent_host.ksmith = Some("/bin/true".into());
    };
    within &= report("a command line in its box", &agent);
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
    let turns = turns.chain([Turn::text("Done.").after_results(2)]);
    let script = Script::new(Turn::agreeing().into_iter().chain(turns));
    let server = ScriptedServer::start(Options::new(script)).unwrap();
    let model = |options: &mut RunOptions, _: &Home| {
        options.agents.endpoint = Endpoint {
            url: Some(format!("{}/v1", server.url())),
            wire: Some(Wire::Chat),
            key_env: None,
        };
        options.writer = WriterChoice::Api("gpt-scripted".into());
        options.review.reviewer = ReviewerChoice::Api("claude-scripted".into());
        options.review.endpoint = options.agents.endpoint.clone();
    };
    within &= report("a model's two calls, and a reviewer's", &model);
    assert!(within, "beyond the bound of {BOUND_MS} ms a round");
}
