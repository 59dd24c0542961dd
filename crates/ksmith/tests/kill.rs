//! The real program, the real judge: killed at random moments and interrupted, a run goes on and verifies.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Entry, Kind, read_records};

const KILLS: u32 = 8;

fn start(home: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ksmith"))
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn run_folder(home: &Path) -> Option<PathBuf> {
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

fn hashes(run: &Path) -> Vec<String> {
    read_records(run)
        .unwrap()
        .iter()
        .map(|record| record.hash.to_string())
        .collect()
}

#[test]
fn a_real_run_killed_at_random_moments_and_interrupted_goes_on_and_verifies() {
    if Command::new("gcc")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        println!("skipped (1): no gcc on this machine");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let task = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tasks/softmax")
        .canonicalize()
        .unwrap();
    let task = task.to_str().unwrap();
    let mut seed = std::process::id();
    for _ in 0..KILLS {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let run = run_folder(home.path());
        let before = run.as_deref().map(hashes).unwrap_or_default();
        let mut child = match &run {
            Some(run) => start(home.path(), &["resume", run.to_str().unwrap()]),
            None => {
                let _ = std::fs::remove_dir_all(home.path().join(".ksmith"));
                start(home.path(), &["run", task, "--wall", "1h"])
            }
        };
        std::thread::sleep(Duration::from_millis(300 + u64::from(seed >> 8) % 3000));
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(run) = run_folder(home.path()) {
            assert_eq!(hashes(&run)[..before.len()], before, "a finished step was lost");
            let report = verify(&run, &VerifyOptions::default());
            assert!(report.is_intact(), "{}", report.sentence());
        }
    }
    let Some(run) = run_folder(home.path()) else {
        println!("skipped (1): this machine is too busy to begin a run between kills");
        return;
    };
    let child = start(home.path(), &["resume", run.to_str().unwrap()]);
    let resumed = |run: &Path| {
        read_records(run)
            .unwrap()
            .iter()
            .filter(|record| record.kind == Kind::Resumed)
            .count()
    };
    let (before, began) = (resumed(&run), Instant::now());
    while resumed(&run) == before && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let status = { child }.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    let last = read_records(&run).unwrap().pop().unwrap().entry().unwrap();
    assert!(matches!(last, Entry::Interrupted(_)), "{last:?}");
    assert!(run.join("report.html").is_file());
    let once = |kind: Kind| {
        read_records(&run)
            .unwrap()
            .iter()
            .filter(|record| record.kind == kind)
            .count()
    };
    let verified = || {
        let output = Command::new(env!("CARGO_BIN_EXE_ksmith"))
            .args(["verify", run.to_str().unwrap()])
            .current_dir(home.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(!verified().contains("report.html"), "{}", verified());
    for kind in [Kind::RunOpened, Kind::Audited, Kind::Draft, Kind::Plan] {
        assert!(once(kind) <= 1, "{kind} was repeated");
    }
}
