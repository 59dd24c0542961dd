//! Judging on a real device: each gate catches a cheat and passes an honest kernel. Without a device one line says how
//! many checks were skipped. Where the tests run elsewhere than they were built, `CARGO_MANIFEST_DIR` says where the
//! crate lies.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at what it did not expect, and says what it skipped"
)]

mod corpus;
mod shortcuts;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ksmith_box::Level;
use ksmith_judge::{Effort, Judge, JudgeError, JudgeOptions};
use ksmith_ledger::{Decision, GateOutcome, Verdict};
use ksmith_task::{Backend, Candidate, ContractError, Task};

use tempfile::TempDir;

use corpus::{CHECKS, Check, HEAD, HONEST, INDEX, REFUSED, ways};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

/// This crate's folder.
fn crate_folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
        .into()
}

/// A judge of an instance; `None`, after a line that says so, without a device.
fn open(task: &Path, instance: &str, state: &Path, effort: Effort, checks: usize) -> Option<Judge> {
    let task = Task::load(crate_folder().join(task)).unwrap();
    let mut options = JudgeOptions::new(state).on(Backend::Cuda);
    options.least = Level::Limits;
    options.effort = effort;
    let instances = task.instances_on(Backend::Cuda, &[]).unwrap();
    let instance = instances.iter().find(|found| found.id() == instance).unwrap();
    match Judge::open(instance, options) {
        Ok(judge) => Some(judge),
        Err(JudgeError::Unsupported(why)) => {
            println!("skipped: {checks} checks on a device ({why})");
            None
        }
        Err(error) => panic!("{error}: {error:?}"),
    }
}

/// The judge of `testdata/scale_add`.
fn scale_add(state: &Path, effort: Effort, checks: usize) -> Option<Judge> {
    open(
        Path::new("testdata/scale_add"),
        "scale_add",
        state,
        effort,
        checks,
    )
}

/// A check's candidate, in a folder of its own.
fn write(check: &Check) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!(
        "schema = 1\nbackend = \"cuda\"\nsources = [\"kernel.cu\"]\n[[variant]]\n  [[variant.step]]\n  \
         kernel = \"scale_add\"\n  {}",
        check.plan
    );
    let source = format!("{}\n{HEAD}{{\n{INDEX}\n{}\n}}\n", check.before, check.body);
    fs::write(folder.path().join("candidate.toml"), manifest).unwrap();
    fs::write(folder.path().join("kernel.cu"), source).unwrap();
    folder
}

fn load(check: &Check) -> Result<Candidate, ContractError> {
    Candidate::load(write(check).path())
}

fn score(judge: &mut Judge, check: &Check) -> Verdict {
    let folder = write(check);
    judge.score(&Candidate::load(folder.path()).unwrap())
}

#[test]
fn every_candidate_is_read_or_refused_as_its_check_says() {
    for check in std::iter::once(&HONEST).chain(CHECKS).chain(&ways()) {
        match load(check) {
            Ok(_) => assert!(!check.codes.contains(&REFUSED), "{} was read", check.name),
            Err(error) => {
                let message = error.to_string();
                assert_eq!(check.codes, [REFUSED], "{}: {message}", check.name);
                assert!(check.words.iter().all(|word| message.contains(word)), "{message}");
            }
        }
    }
}

#[test]
fn cheats_are_caught_and_an_honest_kernel_passes_every_gate() {
    let state = tempfile::tempdir().unwrap();
    let Some(mut judge) = scale_add(state.path(), Effort::Correctness, CHECKS.len() + 1) else {
        return;
    };
    let mut missed = Vec::new();
    for check in std::iter::once(&HONEST).chain(CHECKS).chain([&HONEST]) {
        // `every_candidate_is_read_or_refused_as_its_check_says` sees to those.
        if check.codes == [REFUSED] {
            println!("{:<45} {REFUSED}", check.name);
            continue;
        }
        let began = Instant::now();
        let verdict = score(&mut judge, check);
        let evidence = verdict.gates.last().unwrap().evidence.to_string();
        let right = check.codes.contains(&verdict.code.as_str())
            && check.words.iter().all(|word| evidence.contains(word));
        println!(
            "{:<45} {:<26} {:5.1} s {}",
            check.name,
            verdict.code,
            began.elapsed().as_secs_f64(),
            if right { "" } else { evidence.as_str() }
        );
        if !right {
            missed.push((check.name, verdict.code.clone()));
        }
        if check.name == HONEST.name {
            for gate in &verdict.gates {
                println!(
                    "    {:10} {:8.1} ms {}",
                    gate.name.to_string(),
                    gate.ms,
                    gate.evidence
                );
                assert!(
                    matches!(gate.result, GateOutcome::Pass | GateOutcome::Skipped),
                    "{gate:?}"
                );
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn honest_ways_to_write_a_kernel_pass_every_gate() {
    let state = tempfile::tempdir().unwrap();
    let ways = ways();
    let Some(mut judge) = scale_add(state.path(), Effort::Correctness, ways.len()) else {
        return;
    };
    let mut wronged = Vec::new();
    for way in &ways {
        let began = Instant::now();
        let verdict = score(&mut judge, way);
        println!(
            "{:<45} {:<26} {:5.1} s",
            way.name,
            verdict.code,
            began.elapsed().as_secs_f64()
        );
        if !way.codes.contains(&verdict.code.as_str()) {
            println!("    {}", verdict.gates.last().unwrap().evidence);
            wronged.push((way.name, verdict.code.clone()));
        }
    }
    assert!(wronged.is_empty(), "{wronged:?}");
}

#[test]
fn a_full_scoring_of_the_baselines_own_bytes_never_accepts() {
    let state = tempfile::tempdir().unwrap();
    let Some(mut judge) = scale_add(state.path(), Effort::Full, 1) else {
        return;
    };
    let verdict = score(&mut judge, &HONEST);
    for gate in &verdict.gates {
        println!(
            "{:13} {:9.1} ms {}",
            gate.name.to_string(),
            gate.ms,
            gate.evidence
        );
    }
    assert_ne!(verdict.verdict, Decision::Accept, "{}", verdict.code);
    assert!(judge.report().is_some(), "{}", verdict.code);
}
