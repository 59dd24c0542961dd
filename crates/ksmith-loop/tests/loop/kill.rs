//! `kill -9` at random moments: every run is resumed, verifies, and loses no finished step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Kind, Outcome, read_records};
use ksmith_loop::{Silent, resume_with, run_with};

use crate::scripted::{Home, Round, Script, resume_options};

const ROUNDS: &[Round] = &[
    ("one", &["a speed 2.0", "b speed 3.0", "c speed 1.5"]),
    ("two", &["d speed 3.5", "e speed 2.5"]),
    ("three", &["f speed 4.5", "g leaves compile/error"]),
    ("four", &["h speed 5.0 fails hidden/mismatch", "i speed 4.9"]),
];

const KILLS: u64 = 20;
const CHILD: &str = "KSMITH_LOOP_KILL_TEST_HOME";

fn script() -> Script {
    let mut script = Script::new(ROUNDS);
    script.hooks.pause = Duration::from_millis(4);
    script
}

fn only_run(home: &Path) -> Option<PathBuf> {
    let run = std::fs::read_dir(home.join(".ksmith/runs"))
        .ok()?
        .next()?
        .ok()?
        .path();
    read_records(&run)
        .ok()
        .filter(|records| !records.is_empty())
        .map(|_| run)
}

/// Not a test by itself: the process that the other test kills. It begins a run, or goes on with the one there is.
#[test]
fn child_of_the_kill_test() {
    let Some(home) = std::env::var_os(CHILD) else {
        return;
    };
    let home = PathBuf::from(home);
    match only_run(&home) {
        Some(run) => {
            resume_with(&resume_options(&home, &run), &script(), &mut Silent).unwrap();
        }
        None => {
            // A run that was killed before its first record has no record to go on with.
            let _ = std::fs::remove_dir_all(home.join(".ksmith"));
            let mut options = Home::new().options();
            options.task = home.join("softmax");
            options.home = home.clone();
            options.signing_key = Some(home.join("signing.key"));
            run_with(&options, &script(), &mut Silent).unwrap();
        }
    }
}

fn ledger_bytes(home: &Path) -> u64 {
    let run = std::fs::read_dir(home.join(".ksmith/runs"))
        .ok()
        .and_then(|mut runs| Some(runs.next()?.ok()?.path()));
    run.and_then(|run| std::fs::metadata(run.join("ledger.jsonl")).ok())
        .map_or(0, |meta| meta.len())
}

/// Finished steps, by what they were about.
fn finished(run: &Path) -> BTreeMap<(Kind, String), usize> {
    let mut finished = BTreeMap::new();
    for record in read_records(run).unwrap() {
        let about = record
            .body
            .get("candidate")
            .and_then(|id| id.as_str())
            .unwrap_or_default()
            .to_owned();
        *finished.entry((record.kind, about)).or_default() += 1;
    }
    finished
}

#[test]
fn a_run_killed_at_twenty_random_moments_goes_on_and_loses_no_finished_step() {
    let home = Home::new();
    let mut seed = std::process::id();
    let mut kills = 0;
    for _ in 0..KILLS * 3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_of_the_kill_test", "--test-threads=1"])
            .env(CHILD, home.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = ledger_bytes(home.folder.path());
        let began = std::time::Instant::now();
        // A sitting begins with tenths of a second of start-up, in which nothing can be lost.
        while ledger_bytes(home.folder.path()) == size && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A sitting of the scripted run takes some tens of milliseconds: a longer wait would let it end.
        std::thread::sleep(Duration::from_micros(u64::from(seed >> 8) % 12_000));
        let before = only_run(home.folder.path())
            .map(|run| finished(&run))
            .unwrap_or_default();
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(status) = ended {
            assert!(status.success(), "the run failed by itself");
            break;
        }
        kills += 1;
        if let Some(run) = only_run(home.folder.path()) {
            let after = finished(&run);
            for (step, count) in &before {
                assert!(
                    after.get(step).is_some_and(|found| found >= count),
                    "{step:?} was lost"
                );
            }
            assert!(verify(&run, &VerifyOptions::default()).is_intact());
        }
        if kills == KILLS {
            break;
        }
    }
    let run = only_run(home.folder.path()).expect("twenty sittings leave a record");
    let options = resume_options(home.folder.path(), &run);
    let outcome = resume_with(&options, &script(), &mut Silent).unwrap();
    assert_eq!(outcome.instances[0].outcome, Outcome::GoalMet);
    assert_eq!(
        outcome.instances[0]
            .champion
            .as_ref()
            .unwrap()
            .speedup
            .unwrap()
            .point,
        4.9
    );
    let report = verify(&run, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
    for ((kind, about), count) in finished(&run) {
        if matches!(
            kind,
            Kind::Proposed | Kind::Screened | Kind::Decided | Kind::Promoted | Kind::Draft | Kind::Plan
        ) {
            assert_eq!(count, 1, "{kind} {about} was repeated");
        }
    }
    println!("{kills} kills hit the run");
    assert!(kills >= 5, "only {kills} kills hit the run");
}
