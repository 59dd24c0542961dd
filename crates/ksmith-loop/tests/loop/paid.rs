//! Paid calls and `kill -9`: no call whose answer stands in the record is paid for twice, and no cost is lost.

#![expect(clippy::print_stdout, reason = "the test says how many kills hit")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_agents::gateway::Wire;
use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Entry, Kind, ModelSent, Outcome, read_records};
use ksmith_loop::{InstanceOutcome, RunOutcome, Silent, WriterChoice, resume_with, run_with};
use ksmith_scripted::ScriptedServer;

use crate::agents::{HONEST, agent, boxed};
use crate::models::{ASKS, model_calls, reviewed, writer_and_reviewer};
use crate::scripted::{self, Home, Mixed, picked, resume_options};

/// Set for the process that the test of kills ends: home, server and writer.
const CHILD: [&str; 3] = [
    "KSMITH_PAID_TEST_HOME",
    "KSMITH_PAID_TEST_URL",
    "KSMITH_PAID_TEST_WRITER",
];
/// What one call of the scripted server costs at the prices of that test.
const CALL_USD: f64 = 1.2;

fn only_run(home: &Path) -> Option<PathBuf> {
    let run = std::fs::read_dir(home.join(".ksmith/runs")).ok()?.next()?.ok()?;
    let records = read_records(&run.path()).ok()?;
    (!records.is_empty()).then(|| run.path())
}

/// Begins the run in `home`, or goes on with the one there is.
fn paid_run(home: &Path, url: &str, writer: &str) -> RunOutcome {
    let workshop = Mixed(scripted::Script::new(&[]));
    if let Some(run) = only_run(home) {
        return resume_with(&resume_options(home, &run), &workshop, &mut Silent).unwrap();
    }
    let _ = std::fs::remove_dir_all(home.join(".ksmith"));
    let mut options = reviewed(&Home::new(), url, Wire::Chat);
    options.task = home.join("softmax");
    options.home = home.to_owned();
    options.signing_key = None;
    // Bounds are far above costs: no budget is to end this run.
    options.cost_usd = Some(1e6);
    options.agents.prices = Some(home.join("prices.toml"));
    if writer != "api" {
        options.agents.model = Some("gpt-scripted".into());
        options.writer = WriterChoice::Cli(writer.into());
    }
    run_with(&options, &workshop, &mut Silent).unwrap()
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_of_the_paid_run() {
    let [Some(home), Some(url), Some(writer)] = CHILD.map(|name| std::env::var(name).ok()) else {
        return;
    };
    paid_run(Path::new(&home), &url, &writer);
}

fn paid_home() -> Home {
    let home = Home::new();
    let row = |model: &str| {
        format!(
            "[[model]]\nname = \"{model}\"\ninput = 10000.0\noutput = 10000.0\nmax_output = 100\nchecked = \"2026-12-01\"\nsource = \"this test\"\n"
        )
    };
    let table = format!(
        "schema = 1\ndate = \"2026-12-01\"\n{}{}",
        row("gpt-scripted"),
        row("claude-scripted")
    );
    std::fs::write(home.folder.path().join("prices.toml"), table).unwrap();
    home
}

fn sent(run: &Path) -> Vec<ModelSent> {
    picked(run, |entry| match entry {
        Entry::ModelSent(sent) => Some(sent),
        _ => None,
    })
}

fn count(home: &Path, kind: Kind) -> usize {
    let records = only_run(home).and_then(|run| read_records(&run).ok());
    records.map_or(0, |records| {
        records.iter().filter(|record| record.kind == kind).count()
    })
}

/// Starts the run in a process of its own, or goes on with it.
fn sitting(home: &Path, url: &str, writer: &str) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "paid::child_of_the_paid_run", "--test-threads=1"])
        .envs(CHILD.into_iter().zip([home.to_str().unwrap(), url, writer]))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts the run, or goes on with it, and ends it with `kill -9` once the record holds `number` more of `kind`.
/// `false` where the run ended by itself before.
fn killed_at(home: &Path, url: &str, writer: &str, kind: Kind, number: usize) -> bool {
    let before = count(home, kind);
    let mut child = sitting(home, url, writer);
    let began = std::time::Instant::now();
    let ended = loop {
        if count(home, kind) >= before + number {
            break None;
        }
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{kind} {number} never came"
        );
        std::thread::sleep(Duration::from_millis(2));
    };
    // What was recorded as sent is on its way by now, and its answer is not.
    std::thread::sleep(Duration::from_millis(20));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        ended.is_none_or(|status| status.success()),
        "the run failed by itself"
    );
    ended.is_none()
}

/// A run that is never killed, for comparison: its calls.
fn unbroken(writer: &dyn Fn(&Home) -> String) -> usize {
    let (home, server) = (paid_home(), writer_and_reviewer(0));
    let writer = writer(&home);
    let first = paid_run(home.folder.path(), &server.url(), &writer)
        .instances
        .remove(0);
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    let seen = server.seen().len();
    assert_eq!(usize::try_from(first.models.calls).unwrap(), seen);
    assert!((first.models.cost_usd - seen as f64 * CALL_USD).abs() < 1e-6);
    seen
}

fn kills(writer: &dyn Fn(&Home) -> String, moments: &[(Kind, usize)]) {
    let control = unbroken(writer);
    let (home, server) = (paid_home(), writer_and_reviewer(100));
    let writer = writer(&home);
    let path = home.folder.path();
    let hits = moments
        .iter()
        .filter(|(kind, number)| killed_at(path, &server.url(), &writer, *kind, *number))
        .count();
    assert_eq!(hits, moments.len(), "a kill came too late");
    let (lost, served) = nothing_is_paid_twice_or_lost(path, &server, &writer, control);
    assert!(lost > 0 && served > 0);
    println!("{hits} kills, {control} calls, {lost} on their way when the process died");
}

/// Lets the run end and holds its record against the server's and against a run that was never killed. Gives how many
/// calls were on their way when the process died, and how many answers were served from the record.
fn nothing_is_paid_twice_or_lost(
    home: &Path,
    server: &ScriptedServer,
    writer: &str,
    control: usize,
) -> (usize, usize) {
    let outcome = paid_run(home, &server.url(), writer);
    let first: &InstanceOutcome = &outcome.instances[0];
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    let (sent, answered) = (sent(&first.dir), model_calls(&first.dir));
    let lost: Vec<&ModelSent> = sent
        .iter()
        .filter(|sent| !answered.iter().any(|call| call.call == sent.call))
        .collect();
    // Sent again were those alone whose answers were on their way: no answer on record was paid for twice.
    assert_eq!(sent.len(), control + lost.len());
    // Nothing reached the server without standing in the record, and what stands there is charged.
    let seen = server.seen().len();
    assert!(
        seen <= sent.len(),
        "{seen} calls reached the server, {} are on record",
        sent.len()
    );
    let bounds: f64 = lost.iter().map(|sent| sent.bound_usd).sum();
    let expected = control as f64 * CALL_USD + bounds;
    assert!(
        (first.models.cost_usd - expected).abs() < 1e-6,
        "{} {expected}",
        first.models.cost_usd
    );
    assert!(first.models.cost_usd >= seen as f64 * CALL_USD);
    assert_eq!(usize::try_from(first.models.calls).unwrap(), sent.len());
    assert!((first.models.estimated_usd - bounds).abs() < 1e-6);
    let report = verify(&first.dir, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
    let served = answered.iter().filter(|call| call.served_from.is_some());
    (lost.len(), served.count())
}

#[test]
fn kill_9_at_random_moments_repeats_no_paid_call_and_loses_no_cost() {
    const KILLS: usize = 12;
    let control = unbroken(&|_| "api".to_owned());
    let (home, server) = (paid_home(), writer_and_reviewer(60));
    let path = home.folder.path();
    let records = || {
        only_run(path)
            .and_then(|run| read_records(&run).ok())
            .map_or(0, |all| all.len())
    };
    let mut seed = std::process::id();
    let mut hits = 0;
    while hits < KILLS {
        let before = records();
        let mut child = sitting(path, &server.url(), "api");
        // A sitting begins with a start-up in which nothing is asked.
        while records() == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_micros(u64::from(seed >> 8) % 150_000));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(status) = ended {
            assert!(status.success(), "the run failed by itself");
            break;
        }
        hits += 1;
    }
    let (lost, served) = nothing_is_paid_twice_or_lost(path, &server, "api", control);
    println!("{hits} kills at random, {control} calls, {lost} on their way, {served} served from the record");
    assert!(hits >= 4, "only {hits} kills hit the run");
}

#[test]
fn kill_9_at_any_moment_repeats_no_paid_call_of_writer_or_reviewer_and_loses_no_cost() {
    kills(
        &|_| "api".to_owned(),
        &[
            // The critic's call on its way, and again; its answer on record; the plan's critique.
            (Kind::ModelSent, 1),
            (Kind::ModelSent, 1),
            (Kind::ModelCall, 1),
            (Kind::Reviewed, 1),
            // Within the writer's conversation: on its way, answered, its tool asked, the session written down.
            (Kind::ToolCall, 1),
            (Kind::ModelSent, 1),
            (Kind::AgentCall, 1),
            // The crown's review on its way, and answered; then a session that has nothing more to propose.
            (Kind::ModelSent, 1),
            (Kind::ModelCall, 1),
            (Kind::ModelSent, 1),
        ],
    );
}

#[test]
fn kill_9_of_a_run_with_a_command_line_repeats_no_paid_call_and_loses_no_cost() {
    if !boxed() {
        return;
    }
    let body = format!(
        "{ASKS}\nask > /dev/null\ngrep -q speed candidate/kernel.c && exit 0\nask > /dev/null\nsleep 0.3\nask > /dev/null\n{HONEST}"
    );
    kills(
        &|home| agent(home, &body).display().to_string(),
        &[
            (Kind::Plan, 1),
            (Kind::ModelCall, 1),
            (Kind::ModelSent, 1),
            (Kind::AgentCall, 1),
        ],
    );
}
