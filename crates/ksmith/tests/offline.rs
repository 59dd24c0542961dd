//! Families without a template, through the real program: a stencil, a histogram and a byte kernel, written plainly, are
//! improved with a confirmed gain or the baseline honestly stands.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests report figures and fail by panicking, as tests do"
)]

use std::path::Path;
use std::process::{Command, Output};

use ksmith_ledger::{History, Outcome};

fn ksmith(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ksmith"))
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .output()
        .unwrap()
}

/// What one run came to.
#[derive(Debug, PartialEq)]
enum End {
    Improved {
        lower: f64,
        direction: String,
        source_changed: bool,
    },
    Kept,
}

/// Runs a task for `wall` and checks that the record says what the exit code says. `None` on a machine that is too
/// busy or noisy to measure anything.
fn run(name: &str, wall: &str) -> Option<End> {
    let home = tempfile::tempdir().unwrap();
    let task = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../ksmith-search/testdata")
        .join(name)
        .canonicalize()
        .unwrap();
    let output = ksmith(
        home.path(),
        &[
            "run",
            task.to_str().unwrap(),
            "--wall",
            wall,
            "--seed",
            "5",
            "--json",
        ],
    );
    let code = output.status.code();
    if code == Some(3) {
        return None;
    }
    assert!(
        matches!(code, Some(0 | 1)),
        "{name}: {code:?} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = answer["run"].as_str().unwrap();
    let history = History::load(&home.path().join(".ksmith/runs").join(id)).unwrap();
    let closed = history.closed.clone().unwrap();
    assert_eq!(code == Some(0), closed.outcome == Outcome::GoalMet, "{name}");
    assert!(
        ksmith(home.path(), &["verify", id]).status.success(),
        "{name}: the record is not intact"
    );
    let end = match history.champion() {
        Some(champion) => {
            let verdict = champion.verdict().unwrap();
            let lower = verdict.over_baseline.unwrap().lower;
            let text = home
                .path()
                .join(".ksmith/runs")
                .join(id)
                .join("candidates")
                .join(champion.id());
            let text = std::fs::read(text.join("kernel.c")).unwrap();
            let before = std::fs::read(task.join("baseline/cpu/kernel.c")).unwrap();
            assert!(lower > 1.0, "{name}: {verdict:?}");
            End::Improved {
                lower,
                direction: champion.proposed.direction.clone(),
                source_changed: text != before,
            }
        }
        None => {
            assert_eq!(closed.outcome, Outcome::GoalNotMet, "{name}");
            End::Kept
        }
    };
    Some(end)
}

#[test]
fn a_stencil_a_histogram_and_a_byte_kernel_are_improved_or_honestly_kept() {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped (3): no gcc on this machine");
        return;
    }
    let wall = std::env::var("KSMITH_OFFLINE_WALL").unwrap_or_else(|_| "40s".to_owned());
    let mut undecided = 0;
    for name in ["stencil", "histogram", "bytes"] {
        match run(name, &wall) {
            Some(end) => println!("{name}: {end:?}"),
            None => undecided += 1,
        }
    }
    if undecided > 0 {
        println!("skipped ({undecided}): this machine is too busy or noisy to measure");
    }
}
