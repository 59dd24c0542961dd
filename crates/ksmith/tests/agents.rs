//! The real program, the real judge, a command-line agent in its box that uses the tools: it hands in cheats of the red
//! team, fails a test, mends it, and is crowned. Everything is judged as in any run.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Decision, Entry, Gate, History, ToolCall, read_records};

/// A softmax whose exponential the compiler turns into vector code; several times the baseline's speed.
const FAST: &str = include_str!("testdata/softmax.c");

fn have(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn ksmith(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ksmith"))
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .output()
        .unwrap()
}

/// The agent. Each session takes the next step, which it reads off the brief, as a model would.
fn agent(home: &Path) -> PathBuf {
    let files = home.join("files");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("fast.c"), FAST).unwrap();
    std::fs::copy(
        root().join("redteam/cheats/identity/kernel.c"),
        files.join("cheat.c"),
    )
    .unwrap();
    let script = format!(
        r#"#!/bin/bash
note() {{ printf 'hypothesis = "%s"\ndirection = "%s"\npredicted_gain = 2.0\n' "$1" "$1" > proposal.toml; }}
if ! grep -q '(cheat)' BRIEF.md; then
  cp '{files}/cheat.c' candidate/kernel.c
  note cheat
  exit 0
fi
grep -q '(vectorise)' BRIEF.md && exit 0
sed 's/sum += e;/sum += 2 * e;/' '{files}/fast.c' > candidate/kernel.c
sed -i 's/^flags.*/flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]/' candidate/candidate.toml
note vectorise
ksmith tool task > /dev/null || exit 4
ksmith tool check > check.json || exit 5
ksmith tool test > test.json && exit 6
grep -q '"verdict": "failed"' test.json || exit 7
cp '{files}/fast.c' candidate/kernel.c
ksmith tool test --wait 300 > test.json || exit 8
ksmith tool bench --wait 300 > bench.json || exit 9
ksmith tool submit || exit 10
"#,
        files = files.display(),
    );
    let path = home.join("agent.sh");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let profile = home.join("agent.toml");
    std::fs::write(
        &profile,
        format!(
            "schema = 1\nname = \"scripted\"\nprogram = \"{}\"\nargs = [\"{{prompt}}\"]\nshow = [\"{}\"]\n",
            path.display(),
            files.display()
        ),
    )
    .unwrap();
    profile
}

fn tool_calls(run: &Path) -> Vec<ToolCall> {
    read_records(run)
        .unwrap()
        .iter()
        .filter_map(|record| match record.entry().unwrap() {
            Entry::ToolCall(call) => Some(call),
            _ => None,
        })
        .collect()
}

#[test]
fn an_agent_cheats_fails_a_test_mends_it_and_is_crowned_by_the_real_judge() {
    if !have("gcc") {
        println!("skipped (1): no gcc on this machine");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let level = ksmith(home.path(), &["doctor", "--safety", "--json"]);
    let level: serde_json::Value = serde_json::from_slice(&level.stdout).unwrap();
    if level["measures"][0]["state"] != "ok" {
        println!(
            "skipped (1): no box on this machine: {}",
            level["measures"][0]["reason"]
        );
        return;
    }
    let profile = agent(home.path());
    let task = root().join("tasks/softmax");
    let output = ksmith(
        home.path(),
        &[
            "run",
            task.to_str().unwrap(),
            "--writer",
            &format!("cli:{}", profile.display()),
            "--wall",
            "8m",
            "--candidates",
            "6",
            "--mechanisms",
            "audit,final,digest,screen",
            "--json",
        ],
    );
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    });
    let run = std::fs::read_dir(home.path().join(".ksmith/runs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let said = String::from_utf8_lossy(&output.stderr);
    let history = History::load(&run).unwrap();
    let find = |direction: &str| {
        history
            .candidates
            .iter()
            .find(|c| c.proposed.direction == direction)
    };
    let cheat = find("cheat").unwrap_or_else(|| panic!("{said}"));
    assert!(cheat.promoted.is_none());
    let code = cheat.code().unwrap();
    assert!(code.starts_with("dev/") || code.starts_with("smoke/"), "{code}");
    let fast = find("vectorise").unwrap_or_else(|| panic!("{said}"));
    let calls = tool_calls(&run);
    let verbs: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(
        verbs,
        ["task", "check", "test", "test", "bench", "submit"],
        "{said}"
    );
    assert!(calls.iter().all(|call| call.allowed));
    let report = verify(&run, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
    // Where the machine was too busy for a statement, the judge says so instead of crowning; that is no fault here.
    if fast.promoted.is_none() {
        // So does the screening, whose few calls a busy machine can stretch until nothing looks worth a scoring.
        if let (None, Some(screened)) = (fast.verdict(), &fast.screened) {
            assert!(
                screened.kept && screened.ratio.is_some_and(|ratio| ratio < 1.2),
                "{said}"
            );
            println!(
                "skipped (1): this machine is too busy to screen ({:?})",
                screened.ratio
            );
            return;
        }
        let verdict = fast.verdict().unwrap_or_else(|| panic!("{result} {said}"));
        let code = &verdict.code;
        assert!(
            matches!(verdict.verdict, Decision::Ambiguous | Decision::Error)
                && verdict.gate == Some(Gate::Bench),
            "the fast kernel was not crowned: {code} {result}"
        );
        println!("skipped (1): this machine is too busy for a statement ({code})");
        return;
    }
    assert_eq!(
        history.champion().unwrap().proposed.candidate,
        fast.proposed.candidate
    );
}
