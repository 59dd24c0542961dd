//! The wiring of the command line: exit codes, JSON on standard output, everything else on standard error.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn task(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tasks")
        .join(name)
        .canonicalize()
        .unwrap()
}

fn ksmith(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ksmith"))
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "no JSON ({error}): {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

#[test]
fn a_contract_that_is_not_there_is_exit_2_with_one_json_object() {
    let home = tempfile::tempdir().unwrap();
    let output = ksmith(home.path(), &["--json", "run", "nothing-here"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(json(&output)["error"]["exit"], 2);
    assert!(!home.path().join(".ksmith").exists());
}

#[test]
fn wrong_arguments_are_exit_2_and_say_what_was_expected() {
    let home = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (vec!["run", "x", "--wall", "20"], "expected for example `90s`"),
        (
            vec!["run", "x", "--mechanisms", "drafts"],
            "`drafts` is no mechanism",
        ),
        (vec!["run", "x", "--type", "bf16"], "expected `VARIABLE=DTYPE`"),
        (
            vec!["run", "x", "--writer", "claude"],
            "expected `search` or `folder:PATH`",
        ),
        (vec!["verify", "x", "--head", "12"], "is not a SHA-256 digest"),
    ] {
        let output = ksmith(home.path(), &args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn a_dtype_that_the_task_does_not_have_is_exit_2() {
    let home = tempfile::tempdir().unwrap();
    let task = task("softmax");
    let output = ksmith(home.path(), &["run", task.to_str().unwrap(), "--type", "T=i8"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`T` is never `i8`"));
}

#[test]
fn an_unknown_run_is_exit_2_and_an_empty_log_is_not_an_error() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(ksmith(home.path(), &["resume", "3f07"]).status.code(), Some(2));
    let output = ksmith(home.path(), &["log", "--json"]);
    assert_eq!(
        (output.status.code(), json(&output)),
        (Some(0), serde_json::json!({ "runs": [] }))
    );
}

#[test]
fn lint_abi_and_review_speak_of_a_shipped_task() {
    let home = tempfile::tempdir().unwrap();
    let task = task("softmax");
    let task = task.to_str().unwrap();
    let lint = ksmith(home.path(), &["lint", task, "--json", "--full"]);
    assert_eq!(lint.status.code(), Some(0));
    let lint = json(&lint);
    assert_eq!(lint["passed"], true);
    assert!(
        lint["acceptance"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["command"].as_str().unwrap().starts_with("ksmith "))
    );
    assert!(lint["contract"].as_str().unwrap().contains("softmax"));
    let abi = ksmith(home.path(), &["abi", task]);
    assert!(String::from_utf8_lossy(&abi.stdout).contains("int64_t"));
    let review = json(&ksmith(home.path(), &["review", task, "--json"]));
    assert_eq!(review["classes"].as_array().unwrap().len(), 10);
}

#[test]
fn a_new_task_passes_lint_and_is_not_made_over_an_old_one() {
    let home = tempfile::tempdir().unwrap();
    let made = ksmith(home.path(), &["new", "mine", "--family", "row-reduction"]);
    assert_eq!(
        made.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    assert_eq!(ksmith(home.path(), &["lint", "mine"]).status.code(), Some(0));
    assert_eq!(
        ksmith(home.path(), &["new", "mine", "--family", "row-reduction"])
            .status
            .code(),
        Some(2)
    );
    let asked = ksmith(home.path(), &["new"]);
    assert_eq!(asked.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&asked.stderr).contains("This is no terminal"));
}

#[test]
fn doctor_answers_in_json_with_a_route() {
    let home = tempfile::tempdir().unwrap();
    let output = ksmith(home.path(), &["doctor", "--json", "--no-noise"]);
    let value = json(&output);
    assert!(value["diagnosis"]["route"]["kind"].is_string());
    assert!(!value["diagnosis"]["rows"].as_array().unwrap().is_empty());
    let safety = json(&ksmith(home.path(), &["doctor", "--safety", "--json"]));
    assert_eq!(safety["measures"].as_array().unwrap().len(), 5);
}
