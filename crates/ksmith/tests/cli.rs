//! The wiring of the command line: exit codes, JSON on standard output, everything else on standard error.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

#[path = "../../ksmith-ledger/tests/support/mod.rs"]
mod support;

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
            "expected `search`, `cli:PROFILE`, `api:MODEL`, `replay:RUN` or `folder:PATH`",
        ),
        (
            vec!["verify", "x", "--head", "12"],
            "expected 12 to 64 hex digits",
        ),
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

#[test]
fn a_budget_of_nothing_a_negative_seed_and_a_missing_writer_are_exit_2_and_leave_no_run() {
    let home = tempfile::tempdir().unwrap();
    let task = task("softmax");
    let task = task.to_str().unwrap();
    for (args, expected) in [
        (
            ["--candidates", "0"],
            "0 allows nothing; expected a whole number from 1",
        ),
        (["--wall", "0s"], "`0s` allows nothing"),
        (
            ["--seed", "-1"],
            "`-1` is no seed; expected a whole number from 0",
        ),
        (["--cost-usd", "-1"], "`-1` is no amount"),
        (["--writer", "folder:/nope"], "cannot read folder `/nope`"),
    ] {
        let output = ksmith(home.path(), &["run", task, args[0], args[1]]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    assert!(!home.path().join(".ksmith").exists());
}

#[test]
fn an_error_about_a_contract_has_a_hint_as_text_and_as_json() {
    let home = tempfile::tempdir().unwrap();
    let output = ksmith(home.path(), &["run", "nope", "--json"]);
    let hints = &json(&output)["error"]["hints"];
    assert!(hints[0].as_str().unwrap().contains("ksmith new"), "{hints}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint: "));
}

#[test]
fn a_contract_with_errors_gets_no_conditions_of_acceptance() {
    let home = tempfile::tempdir().unwrap();
    let made = ksmith(home.path(), &["new", "mine", "--family", "row-reduction"]);
    assert_eq!(made.status.code(), Some(0));
    std::fs::remove_file(home.path().join("mine/reference.c")).unwrap();
    let lint = ksmith(home.path(), &["lint", "mine"]);
    let text = String::from_utf8_lossy(&lint.stdout).into_owned() + &String::from_utf8_lossy(&lint.stderr);
    assert_eq!(lint.status.code(), Some(2), "{text}");
    assert!(!text.contains("Accepted when"), "{text}");
    let value = json(&ksmith(home.path(), &["lint", "mine", "--json"]));
    assert!(
        value["acceptance"].as_array().is_none_or(Vec::is_empty),
        "{value}"
    );
}

#[test]
fn a_task_from_a_prototype_says_what_it_guessed() {
    let home = tempfile::tempdir().unwrap();
    let prototype = "void scale(const float* x, float* y, float a, int64_t n)";
    let made = ksmith(home.path(), &["new", "scaled", "--from-prototype", prototype]);
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert_eq!(made.status.code(), Some(0));
    for guess in [
        "guess: input `x` is f32 [n]",
        "guess: output `y` is f32 [n], and its tolerance",
        "guess: scalar `a` is drawn from uniform(0.5, 2)",
        "guess: axis `n`",
        "ksmith lint scaled",
    ] {
        assert!(text.contains(guess), "{guess}: {text}");
    }
    assert!(!text.contains("the order of the arguments"), "{text}");
    let lint = json(&ksmith(home.path(), &["lint", "scaled", "--json"]));
    assert_eq!(lint["passed"], false, "both C files are still to be written");
    let other = "void gain(int64_t n, float* y, const float* x)";
    let made = ksmith(home.path(), &["new", "gain", "--from-prototype", other]);
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(text.contains("yours, (n, y, x), become (x, y, n)"), "{text}");
}

#[test]
fn a_profile_of_a_gpu_is_read_without_one() {
    let home = tempfile::tempdir().unwrap();
    let report =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../ksmith-insight/testdata/ncu/softmax_h200_raw.csv");
    let report = report.to_str().unwrap();
    let read = ksmith(home.path(), &["profile", "--import", report]);
    let text = String::from_utf8_lossy(&read.stdout).into_owned();
    assert_eq!(read.status.code(), Some(0), "{text}");
    assert!(text.len() <= 2049 && text.trim_end().lines().last().unwrap().starts_with("Next edit: "));
    let value = json(&ksmith(home.path(), &["profile", "--import", report, "--json"]));
    assert_eq!(value["kernels"][0], "softmax");
    assert!(value["digest"]["next"]["change"].is_string());
    assert_eq!(value["reading"]["dimensions"].as_array().unwrap().len(), 6);
    assert_eq!(ksmith(home.path(), &["profile"]).status.code(), Some(2));
    assert_eq!(
        ksmith(home.path(), &["profile", "--import", "none.csv"])
            .status
            .code(),
        Some(2)
    );
}

fn has_gcc() -> bool {
    Path::new("/usr/bin/gcc").exists()
}

#[test]
fn check_finds_a_missing_entry_and_names_what_is_there() {
    if !has_gcc() {
        println!("skipped (1): no gcc on this machine");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("kernel.c"), "void softmaks(void) {}\n").unwrap();
    let manifest = |flags: &str| {
        let text = format!(
            "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"softmax\"\nflags = [\"{flags}\"]\n"
        );
        std::fs::write(folder.join("candidate.toml"), text).unwrap();
    };
    let task = task("softmax");
    let check = || {
        ksmith(
            home.path(),
            &["check", "mine", "--task", task.to_str().unwrap(), "--json"],
        )
    };
    manifest("-O3");
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    let value = json(&output);
    assert_eq!(value["code"], "compile/no-entry");
    assert!(
        value["log"].as_str().unwrap().contains("it exports softmaks"),
        "{value}"
    );
    manifest("-O9");
    let output = check();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("the levels are -O0"), "{error}");
}

#[test]
fn a_certificate_by_itself_is_verified_and_foreign_sources_beside_it_are_found() {
    let sample = support::sample();
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("exported");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(
        sample.run_dir.join("certificate.json"),
        folder.join("certificate.json"),
    )
    .unwrap();
    let key = sample.key.public().to_string();
    let head = sample.head.to_string();
    for args in [
        vec!["verify", "exported"],
        vec![
            "verify",
            "exported/certificate.json",
            "--key",
            &key,
            "--head",
            &head,
        ],
    ] {
        let output = ksmith(home.path(), &args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains("The signature fits the text"), "{text}");
    }
    let other = "0".repeat(64);
    let wrong = ksmith(home.path(), &["verify", "exported", "--head", &other, "--json"]);
    assert_eq!(wrong.status.code(), Some(4));
    assert_eq!(json(&wrong)["damage"]["cause"], "head-mismatch");
    std::fs::write(folder.join("kernel.c"), "void other(void) {}\n").unwrap();
    std::fs::write(
        folder.join("candidate.toml"),
        "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"other\"\n",
    )
    .unwrap();
    let foreign = ksmith(home.path(), &["verify", "exported", "--json"]);
    assert_eq!(foreign.status.code(), Some(4));
    assert_eq!(json(&foreign)["damage"]["cause"], "export-mismatch");
    let text = String::from_utf8_lossy(&ksmith(home.path(), &["verify", "exported"]).stdout).into_owned();
    assert!(text.starts_with("Damaged: "), "{text}");
    std::fs::remove_file(folder.join("certificate.json")).unwrap();
    let bare = ksmith(home.path(), &["verify", "exported"]);
    let text = String::from_utf8_lossy(&bare.stdout).into_owned();
    assert_eq!(bare.status.code(), Some(4), "{text}");
    assert!(
        text.starts_with("Damaged: `certificate.json`: it is missing"),
        "{text}"
    );
}

#[test]
fn a_page_that_is_missing_or_another_is_named_in_the_last_line() {
    let sample = support::sample();
    let home = tempfile::tempdir().unwrap();
    let run = sample.run_dir.to_str().unwrap();
    let said = || {
        let output = ksmith(home.path(), &["verify", run]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(said().contains("`report.html` is missing"), "{}", said());
    assert_eq!(ksmith(home.path(), &["report", run]).status.code(), Some(0));
    assert!(!said().contains("report.html"), "{}", said());
    let page = sample.run_dir.join("report.html");
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, text.replacen("<p", "<p title=\"better\"", 1)).unwrap();
    assert!(said().contains("`report.html` is not the page"), "{}", said());
}
