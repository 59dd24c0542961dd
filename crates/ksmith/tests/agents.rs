//! The real program, the real judge, and every writer: each run ends with a champion that was confirmed, and its record
//! is intact. The command lines are the real Codex and Qwen Code (`.ci/agents` installs them), driven by the scripted
//! model server; where neither is installed, a shell script takes their place.
//!
//! Runs measure, so one goes at a time. Where the machine is too busy for a statement, a test says so and is counted.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking, as tests do, and say what they skip"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{AgentCall, Decision, Entry, Gate, History, ObjectStore, Role, ToolCall, read_records};
use ksmith_scripted::{Action, Options, Script, ScriptedServer, Turn, When};
use serde_json::{Value, json};

/// A softmax whose exponential the compiler turns into vector code; several times the baseline's speed.
const FAST: &str = include_str!("testdata/softmax.c");
const FLAGS: &str = r#"flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]"#;
const VECTORISE: &str = "hypothesis = \"vectorise\"\ndirection = \"vectorise\"\npredicted_gain = 2.0\n";
const CHEAT: &str = "hypothesis = \"cheat\"\ndirection = \"cheat\"\npredicted_gain = 2.0\n";

/// Far more than a run of an agent takes that stops by itself.
const AGENTS_WALL: &str = "8m";

/// The same with twice each term in the sum.
fn wrong() -> String {
    FAST.replace("sum += e;", "sum += 2 * e;")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A copy of the softmax task whose runs end at their goal.
fn task(home: &Path) -> String {
    let folder = home.join("softmax");
    copy(&root().join("tasks/softmax"), &folder);
    let file = folder.join("task.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let start = "performance = { ";
    assert!(text.contains(start) && !text.contains("stop ="), "{text}");
    let text = text.replace(start, &format!("{start}stop = \"goal\", "));
    std::fs::write(&file, text).unwrap();
    folder.display().to_string()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn cheat() -> String {
    std::fs::read_to_string(root().join("redteam/cheats/identity/kernel.c")).unwrap()
}

/// One measuring run at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where `.ci/agents` puts command lines.
fn installed() -> PathBuf {
    root().join("target/tools/agents/node_modules/.bin")
}

fn ksmith(home: &Path, args: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new(env!("CARGO_BIN_EXE_ksmith"))
        .args(args)
        .current_dir(home)
        .env("HOME", home)
        .env("PATH", format!("{}:{path}", installed().display()))
        .output()
        .unwrap()
}

/// Whether candidates can be compiled here, and agents boxed; a counted line where not.
fn can_run(home: &Path, boxed: bool) -> bool {
    let compiler = Command::new("gcc")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if compiler.is_err() {
        println!("skipped (1): no gcc on this machine");
        return false;
    }
    if !boxed {
        return true;
    }
    let level = ksmith(home, &["doctor", "--safety", "--json"]);
    let level: Value = serde_json::from_slice(&level.stdout).unwrap();
    let is_boxed = level["measures"][0]["state"] == "ok";
    if !is_boxed {
        println!(
            "skipped (1): no box on this machine: {}",
            level["measures"][0]["reason"]
        );
    }
    is_boxed
}

/// A run that has ended.
struct Ended {
    dir: PathBuf,
    history: History,
    said: String,
}

/// Runs the task with a writer and checks the record. At its goal, or where nothing is left to propose, a run ends
/// before its time.
fn run(home: &Path, writer: &str, wall: &str, more: &[&str]) -> Ended {
    let task = task(home);
    let mut args = vec!["run", task.as_str(), "--writer", writer, "--wall", wall, "--json"];
    args.extend(more);
    let output = ksmith(home, &args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let dir = home.join(".ksmith/runs").join(result["run"].as_str().unwrap());
    let report = verify(&dir, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
    Ended {
        history: History::load(&dir).unwrap(),
        dir,
        said: format!("{result}\n{said}"),
    }
}

impl Ended {
    fn entries(&self) -> Vec<Entry> {
        let records = read_records(&self.dir).unwrap();
        records.iter().map(|record| record.entry().unwrap()).collect()
    }

    fn tools(&self) -> Vec<ToolCall> {
        let entries = self.entries().into_iter();
        entries
            .filter_map(|entry| match entry {
                Entry::ToolCall(call) => Some(call),
                _ => None,
            })
            .collect()
    }

    fn sessions(&self) -> Vec<AgentCall> {
        let entries = self.entries().into_iter();
        entries
            .filter_map(|entry| match entry {
                Entry::AgentCall(call) => Some(call),
                _ => None,
            })
            .collect()
    }

    /// Whether the candidate of a direction was crowned; where the machine was too busy to say, that is no fault and is
    /// counted.
    fn is_crowned(&self, direction: &str) -> bool {
        let said = &self.said;
        let mut found = self.history.candidates.iter();
        let found = found
            .find(|candidate| candidate.proposed.direction == direction)
            .unwrap_or_else(|| panic!("nothing was proposed: {said}"));
        if found.promoted.is_some() {
            let champion = self.history.champion().unwrap();
            assert_eq!(champion.proposed.candidate, found.proposed.candidate);
            return true;
        }
        // So does the screening, whose few calls a busy machine can stretch until nothing looks worth a scoring.
        if let (None, Some(screened)) = (found.verdict(), &found.screened) {
            assert!(
                screened.kept && screened.ratio.is_some_and(|ratio| ratio < 1.2),
                "{said}"
            );
            println!(
                "skipped (1): this machine is too busy to screen ({:?})",
                screened.ratio
            );
            return false;
        }
        let verdict = found.verdict().unwrap_or_else(|| panic!("{said}"));
        assert!(
            matches!(verdict.verdict, Decision::Ambiguous | Decision::Error)
                && verdict.gate == Some(Gate::Bench),
            "the fast kernel was not crowned: {} {said}",
            verdict.code
        );
        println!(
            "skipped (1): this machine is too busy for a statement ({})",
            verdict.code
        );
        false
    }
}

fn heredoc(path: &str, text: &str) -> String {
    format!("cat > {path} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n")
}

/// What a model says to an agent with a shell: it cheats, if it is to; then it fails a test, mends it, and hands in.
fn with_a_shell(cheats: bool) -> Vec<Turn> {
    let flags = format!("sed -i 's/^flags.*/{FLAGS}/' candidate/candidate.toml\n");
    let first = format!(
        "{}{flags}{}ksmith tool check; ksmith tool test --wait 120",
        heredoc("candidate/kernel.c", &wrong()),
        heredoc("proposal.toml", VECTORISE)
    );
    let second = format!(
        "{}ksmith tool test --wait 120 && ksmith tool bench --wait 120 && ksmith tool submit",
        heredoc("candidate/kernel.c", FAST)
    );
    let cheat = format!(
        "{}{}",
        heredoc("candidate/kernel.c", &cheat()),
        heredoc("proposal.toml", CHEAT)
    );
    let at_first = |when: When| When {
        results: Some(1),
        ..when
    };
    let mut turns = vec![
        Turn::calls([Action::shell("cat BRIEF.md")]).after_results(0),
        Turn::text("Nothing more to try.").when(at_first(When {
            contains: vec!["(vectorise)".into()],
            ..When::default()
        })),
    ];
    if cheats {
        turns.push(Turn::calls([Action::shell(cheat)]).when(at_first(When {
            lacks: vec!["(cheat)".into()],
            ..When::default()
        })));
    }
    turns.extend([
        Turn::calls([Action::shell(first)]).after_results(1),
        Turn::calls([Action::shell(second)]).when(When {
            results: Some(2),
            last_contains: Some("\"verdict\": \"failed\"".into()),
            ..When::default()
        }),
        Turn::text("Handed in, all tests pass.").after_results(2),
        Turn::text("Handed in.").after_results(3),
    ]);
    turns
}

/// A server whose models write as `turns` say and review without objection.
fn serve(turns: Vec<Turn>) -> ScriptedServer {
    let script = Script::new(Turn::agreeing().into_iter().chain(turns));
    ScriptedServer::start(Options::new(script)).unwrap()
}

/// A run in which a command line writes: a real one with its model, which a model of another vendor reviews, or a
/// stand-in without one, which the rules review.
fn a_command_line_is_crowned(home: &Path, writer: &str, model: Option<&str>, cheats: bool) {
    let server = serve(with_a_shell(cheats));
    let url = format!("{}/v1", server.url());
    let mut more = vec!["--mechanisms", "digest,screen,review"];
    let (reviewer, independence) = match model {
        Some(model) => {
            more.extend(["--model", model, "--model-url", url.as_str()]);
            more.extend(["--reviewer-url", url.as_str(), "--reviewer-wire", "messages"]);
            ("api:claude-scripted", "other-vendor")
        }
        None => ("lint", "no-model"),
    };
    more.extend(["--reviewer", reviewer]);
    let ended = run(home, writer, AGENTS_WALL, &more);
    let sessions = ended.sessions();
    let answer = sessions[0].answer.unwrap();
    assert!(answer.bytes > 0, "the transcript is not in the record");
    let crowned = ended.is_crowned("vectorise");
    if cheats {
        let mut found = ended.history.candidates.iter();
        let cheat = found
            .find(|candidate| candidate.proposed.direction == "cheat")
            .unwrap();
        let code = cheat.code().unwrap();
        assert!(code.starts_with("dev/") || code.starts_with("smoke/"), "{code}");
        assert!(cheat.promoted.is_none());
    }
    let calls = ended.tools();
    let verbs: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(
        verbs,
        ["check", "test", "test", "bench", "submit"],
        "{}",
        ended.said
    );
    assert!(calls.iter().all(|call| call.allowed));
    if !crowned {
        return;
    }
    let champion = ended.history.champion().unwrap();
    let mut reviews = ended.history.reviews.iter().map(|(_, review)| review);
    let review = reviews
        .find(|review| review.candidate.as_deref() == Some(champion.id()))
        .unwrap();
    let detail = review.detail.as_ref().unwrap();
    assert_eq!(
        (review.reviewer.as_str(), review.veto, detail.source),
        (reviewer, false, champion.proposed.digest)
    );
    assert!(model.is_none() || detail.outcome == "pass");
    assert_eq!(detail.independence, independence);
    println!("{writer} wrote {}, reviewed and crowned", champion.id());
}

#[test]
fn real_command_lines_cheat_fail_a_test_mend_it_are_reviewed_and_crowned() {
    let home = tempfile::tempdir().unwrap();
    if !can_run(home.path(), true) {
        return;
    }
    let _alone = alone();
    let mut driven = 0;
    // One that cheats first is enough: what it leaves is judged as in any run.
    for (name, model, cheats) in [("codex", "gpt-scripted", true), ("qwen", "qwen-scripted", false)] {
        if installed().join(name).exists() {
            a_command_line_is_crowned(home.path(), &format!("cli:{name}"), Some(model), cheats);
            driven += 1;
        } else {
            println!("skipped (1): `{name}` is not installed; `.ci/agents` installs it where npm is");
        }
    }
    if driven == 0 {
        stands_in(home.path());
    }
}

/// A shell script in the place of a command line: each session takes the next step, which it reads off the brief.
fn stands_in(home: &Path) {
    let files = home.join("files");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(files.join("fast.c"), FAST).unwrap();
    std::fs::write(files.join("wrong.c"), wrong()).unwrap();
    std::fs::write(files.join("cheat.c"), cheat()).unwrap();
    let script = format!(
        r#"#!/bin/bash
echo 'taking the next step'
if ! grep -q '(cheat)' BRIEF.md; then
  cp '{files}/cheat.c' candidate/kernel.c
  {cheat}
  exit 0
fi
grep -q '(vectorise)' BRIEF.md && exit 0
cp '{files}/wrong.c' candidate/kernel.c
sed -i 's/^flags.*/{FLAGS}/' candidate/candidate.toml
{vectorise}
ksmith tool check > check.json || exit 5
ksmith tool test --wait 300 > test.json && exit 6
grep -q '"verdict": "failed"' test.json || exit 7
cp '{files}/fast.c' candidate/kernel.c
ksmith tool test --wait 300 > test.json || exit 8
ksmith tool bench --wait 300 > bench.json || exit 9
ksmith tool submit || exit 10
"#,
        files = files.display(),
        cheat = heredoc("proposal.toml", CHEAT),
        vectorise = heredoc("proposal.toml", VECTORISE),
    );
    let path = home.join("agent.sh");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let profile = home.join("agent.toml");
    let text = format!(
        "schema = 1\nname = \"scripted\"\nprogram = \"{}\"\nargs = [\"{{prompt}}\"]\nshow = [\"{}\"]\n",
        path.display(),
        files.display()
    );
    std::fs::write(&profile, text).unwrap();
    a_command_line_is_crowned(home, &format!("cli:{}", profile.display()), None, true);
}

/// What a plain model says: it fails a test, mends it, and stops.
fn without_a_shell() -> Vec<Turn> {
    let manifest =
        format!("schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"softmax\"\n{FLAGS}\n");
    let write = |path: &str, text: &str| Action::call("write", json!({ "path": path, "text": text }));
    let test = || Action::call("test", json!({}));
    vec![
        Turn::text("Nothing more to try.").if_contains("(vectorise)"),
        Turn::calls([
            write("candidate/kernel.c", &wrong()),
            write("candidate/candidate.toml", &manifest),
            write("proposal.toml", VECTORISE),
            test(),
        ])
        .after_results(0),
        Turn::calls([write("candidate/kernel.c", FAST), test()]).when(When {
            results: Some(4),
            last_contains: Some("\"verdict\":\"failed\"".into()),
            ..When::default()
        }),
        Turn::text("Done.").after_results(6),
    ]
}

#[test]
fn a_plain_model_is_crowned_and_a_replay_of_its_run_is_the_same_byte_for_byte() {
    let home = tempfile::tempdir().unwrap();
    if !can_run(home.path(), false) {
        return;
    }
    let _alone = alone();
    let server = serve(without_a_shell());
    let url = format!("{}/v1", server.url());
    let mechanisms = ["--mechanisms", "digest,screen"];
    let first = run(
        home.path(),
        "api:gpt-scripted",
        AGENTS_WALL,
        &[
            &["--model-url", url.as_str(), "--model-wire", "responses"][..],
            &mechanisms[..],
        ]
        .concat(),
    );
    let asked = server.seen().len();
    let objects = ObjectStore::new(&first.dir);
    let transcript = objects
        .get_text(first.sessions()[0].answer.unwrap().blob)
        .unwrap();
    assert!(transcript.contains("\"tool\":\"test\""), "{transcript}");
    let proposed = |ended: &Ended| -> Vec<_> {
        let candidates = ended.history.candidates.iter();
        candidates
            .filter(|candidate| candidate.proposed.role == Role::Candidate)
            .map(|candidate| {
                let proposed = &candidate.proposed;
                (
                    proposed.tree,
                    proposed.direction.clone(),
                    proposed.hypothesis.clone(),
                    proposed.predicted,
                )
            })
            .collect()
    };
    let crowned = first.is_crowned("vectorise");
    let writer = format!("replay:{}", first.dir.display());
    let again = run(home.path(), &writer, AGENTS_WALL, &mechanisms);
    assert_eq!(proposed(&again), proposed(&first));
    assert_eq!(server.seen().len(), asked, "a replay asked a model");
    // Judged anew: by its own draws and its own times.
    if again.is_crowned("vectorise") && crowned {
        println!("the model and the replay of its run were both crowned");
    }
}

#[test]
fn the_search_is_crowned() {
    let home = tempfile::tempdir().unwrap();
    if !can_run(home.path(), false) {
        return;
    }
    let _alone = alone();
    let ended = run(home.path(), "search", "60s", &["--seed", "1"]);
    let closed = ended.history.closed.as_ref().unwrap();
    match ended.history.champion() {
        Some(champion) => {
            let verdict = champion.verdict().unwrap();
            assert!(verdict.over_baseline.unwrap().lower > 1.0, "{}", ended.said);
            println!("the search's {} was crowned", champion.id());
        }
        None => {
            let mut candidates = ended.history.candidates.iter();
            let is_unstated = |verdict: &ksmith_ledger::Verdict| !verdict.verdict.is_statement();
            assert!(
                candidates.all(|candidate| candidate.verdict().is_none_or(is_unstated)),
                "{}",
                ended.said
            );
            println!(
                "skipped (1): this machine is too busy for a statement ({})",
                closed.reason
            );
        }
    }
}

#[test]
fn a_model_reviews_a_contract_and_a_run_waits_for_the_resolutions() {
    let home = tempfile::tempdir().unwrap();
    let server = serve(Vec::new());
    let url = format!("{}/v1", server.url());
    let task = task(home.path());
    let options = [
        "--reviewer",
        "api:claude-scripted",
        "--reviewer-url",
        url.as_str(),
        "--json",
    ];
    let output = ksmith(
        home.path(),
        &[&["review", task.as_str()][..], &options[..]].concat(),
    );
    let review: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(
        (&review["open"], &review["vendor"], &review["spent"]["calls"]),
        (&json!(3), &json!("anthropic"), &json!(1))
    );
    let calls = std::fs::read_dir(home.path().join(".ksmith/reviews"))
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok())
        .find(|text| text.contains("\"model-sent\""))
        .unwrap();
    assert_eq!(calls.lines().count(), 2);
    let waits = ksmith(home.path(), &["run", &task, "--wall", "10s"]);
    assert_eq!(waits.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&waits.stderr).contains("process/open-ambiguity"));
    let resolved = ksmith(home.path(), &["review", &task, "--accept-rest", "--json"]);
    let resolved: Value = serde_json::from_slice(&resolved.stdout).unwrap();
    assert_eq!(resolved["open"], 0);
    assert_eq!(server.seen().len(), 1, "somebody was asked again");
}
