//! The real program, the real judge, and every writer: each run ends with a champion that was confirmed, and its record
//! is intact. The command lines are the real ones that `.ci/agents` installs, driven by the scripted model server; where
//! none is installed, a shell script takes their place.
//!
//! Runs measure, so one goes at a time. Where the machine is too busy for a statement, a run is tried again, three times
//! at most. What came of each writer is one line on standard error, which no test harness swallows.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{
    AgentCall, CandidateHistory, Decision, Entry, Gate, History, ObjectStore, Role, Status, ToolCall,
    read_records,
};
use ksmith_scripted::{Action, Options, Script, ScriptedServer, Turn, When};
use serde_json::{Value, json};

/// A softmax whose exponential the compiler turns into vector code; several times the baseline's speed.
const FAST: &str = include_str!("testdata/softmax.c");
const FLAGS: &str = r#"flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]"#;
const VECTORISE: &str = "hypothesis = \"vectorise\"\ndirection = \"vectorise\"\npredicted_gain = 2.0\n";
const CHEAT: &str = "hypothesis = \"cheat\"\ndirection = \"cheat\"\npredicted_gain = 2.0\n";

/// Far more than a run of an agent takes that stops by itself.
const AGENTS_WALL: &str = "8m";
/// How often a run is tried on a machine that is too busy for a statement.
const TRIES: usize = 3;
/// What is on besides the judge: the quick pass, and the last confirmation of a champion.
const BARE: [&str; 2] = ["--mechanisms", "digest,screen,final"];

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
        say("skipped (1): no gcc on this machine");
        return false;
    }
    if !boxed {
        return true;
    }
    let level = ksmith(home, &["doctor", "--safety", "--json"]);
    let level: Value = serde_json::from_slice(&level.stdout).unwrap();
    let is_boxed = level["measures"][0]["state"] == "ok";
    if !is_boxed {
        let reason = &level["measures"][0]["reason"];
        say(&format!("skipped (1): no box on this machine: {reason}"));
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
    Ended::read(dir, format!("{result}\n{said}"))
}

/// The same on a terminal, at which a person says `words`; none where this machine has no `script` to make one.
fn run_at_a_terminal(home: &Path, writer: &str, more: &[&str], words: &str) -> Option<Ended> {
    let task = task(home);
    let program = [
        env!("CARGO_BIN_EXE_ksmith"),
        "run",
        task.as_str(),
        "--writer",
        writer,
    ];
    let line = [&program[..], &["--wall", AGENTS_WALL], more].concat();
    let quoted: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
    let mut child = Command::new("script")
        .args(["-q", "-c", &quoted.join(" "), "/dev/null"])
        .current_dir(home)
        .env("HOME", home)
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    // The end of what is typed is not the end of the terminal: the pipe stays open as long as the program runs.
    let mut typing = child.stdin.take().unwrap();
    typing.write_all(words.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(typing);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut runs = std::fs::read_dir(home.join(".ksmith/runs")).unwrap_or_else(|_| panic!("{said}"));
    let dir = runs.next().unwrap().unwrap().path();
    Some(Ended::read(dir, said))
}

impl Ended {
    fn read(dir: PathBuf, said: String) -> Self {
        let report = verify(&dir, &VerifyOptions::default());
        assert!(report.is_intact(), "{} {said}", report.sentence());
        Self {
            history: History::load(&dir).unwrap(),
            dir,
            said,
        }
    }

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

    /// What its sessions said, byte for byte.
    fn transcripts(&self) -> Vec<Vec<u8>> {
        let objects = ObjectStore::new(&self.dir);
        let answers = self.sessions().into_iter().filter_map(|call| call.answer);
        answers.map(|answer| objects.get(answer.blob).unwrap()).collect()
    }

    /// How many of its sessions led to proposals, or came before one that did.
    fn fruitful(&self) -> usize {
        let (mut sessions, mut fruitful) = (0, 0);
        for entry in self.entries() {
            match entry {
                Entry::AgentCall(_) => sessions += 1,
                Entry::Proposed(_) => fruitful = sessions,
                _ => {}
            }
        }
        fruitful
    }

    /// What its writer proposed, in order.
    fn proposed(&self) -> Vec<Proposed> {
        let candidates = self
            .history
            .candidates
            .iter()
            .map(|candidate| &candidate.proposed);
        candidates
            .filter(|proposed| proposed.role == Role::Candidate)
            .map(|proposed| {
                let ideas = (proposed.direction.clone(), proposed.hypothesis.clone());
                (proposed.tree.tree.to_string(), ideas, proposed.predicted)
            })
            .collect()
    }

    fn by_direction(&self, direction: &str) -> &CandidateHistory {
        let mut candidates = self.history.candidates.iter();
        candidates
            .find(|candidate| candidate.proposed.direction == direction)
            .unwrap_or_else(|| panic!("`{direction}` was not proposed: {}", self.said))
    }

    /// Whether the candidate of a direction is the champion by its last confirmation. An error says why this machine
    /// allowed no statement; whatever else came of it fails the test.
    fn is_confirmed(&self, direction: &str) -> Result<(), String> {
        let (found, said) = (self.by_direction(direction), &self.said);
        if found.promoted.is_some() {
            return self.is_champion(found);
        }
        // A busy machine can stretch the few calls of a quick pass until nothing looks worth a scoring.
        if let (None, Some(screened)) = (found.verdict(), &found.screened) {
            let ratio = screened.ratio.filter(|ratio| screened.kept && *ratio < 1.2);
            let ratio = ratio.unwrap_or_else(|| panic!("{said}"));
            return Err(format!("{ratio:.2}x in the quick pass"));
        }
        let verdict = found.verdict().unwrap_or_else(|| panic!("{said}"));
        assert!(
            matches!(verdict.verdict, Decision::Ambiguous | Decision::Error)
                && verdict.gate == Some(Gate::Bench),
            "the fast kernel was not crowned: {} {said}",
            verdict.code
        );
        Err(verdict.code.clone())
    }

    /// Whether a promoted candidate is the champion by a confirmation after that of its promotion.
    fn is_champion(&self, found: &CandidateHistory) -> Result<(), String> {
        assert_eq!(found.status(), Status::Champion, "{}", self.said);
        let [_, later @ ..] = found.confirmed.as_slice() else {
            panic!("promoted without a confirmation: {}", self.said)
        };
        match later.last().map(|confirmed| &confirmed.verdict) {
            None => Err("no time for the last confirmation".to_owned()),
            Some(verdict) if verdict.verdict.is_statement() => {
                assert_eq!(verdict.verdict, Decision::Accept, "{}", self.said);
                assert!(verdict.over_baseline.unwrap().lower > 1.0, "{}", self.said);
                Ok(())
            }
            Some(verdict) => Err(verdict.code.clone()),
        }
    }
}

/// Tree, direction and hypothesis, and predicted gain of a proposal.
type Proposed = (String, (String, String), Option<f64>);

/// What came of one writer.
struct Row {
    writer: String,
    confirmed: Result<(), Vec<String>>,
    seconds: f64,
}

/// What came of each writer.
struct Tally {
    home: tempfile::TempDir,
    rows: Vec<Row>,
    folders: usize,
}

impl Tally {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            rows: Vec::new(),
            folders: 0,
        }
    }

    /// Has one writer run until its champion is confirmed, each time in an empty home. Gives its last run.
    fn until_confirmed(
        &mut self,
        writer: &str,
        mut run: impl FnMut(&Path) -> (Ended, Result<(), String>),
    ) -> Ended {
        let (mut causes, began) = (Vec::new(), Instant::now());
        loop {
            self.folders += 1;
            let home = self.home.path().join(self.folders.to_string());
            std::fs::create_dir(&home).unwrap();
            let (ended, confirmed) = run(&home);
            causes.extend(confirmed.clone().err());
            if confirmed.is_ok() || causes.len() == TRIES {
                self.rows.push(Row {
                    writer: writer.to_owned(),
                    confirmed: confirmed.map_err(|_| causes),
                    seconds: began.elapsed().as_secs_f64(),
                });
                return ended;
            }
        }
    }

    /// One line that says it, one with the time that it took, and one for each writer that this machine was too busy for.
    fn say(&self) {
        let all = |what: &dyn Fn(&Row) -> String| {
            let each: Vec<String> = self
                .rows
                .iter()
                .map(|row| format!("{} {}", row.writer, what(row)))
                .collect();
            each.join(", ")
        };
        say(&format!(
            "crowned: {}",
            all(&|row| u8::from(row.confirmed.is_ok()).to_string())
        ));
        say(&format!("seconds: {}", all(&|row| format!("{:.0}", row.seconds))));
        for row in &self.rows {
            if let Err(causes) = &row.confirmed {
                let (writer, causes) = (&row.writer, causes.join(", "));
                say(&format!(
                    "skipped (1): {writer}: this machine is too busy for a statement ({causes})"
                ));
            }
        }
    }
}

/// A line that is seen whether the test passes or not: the harness takes what macros print, and nothing else.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn heredoc(path: &str, text: &str) -> String {
    format!("cat > {path} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n")
}

/// What a model says to an agent with a shell: it cheats, if it is to; then it fails a test, mends it, and hands in.
fn with_a_shell(line: Line) -> Vec<Turn> {
    let flags = format!("sed -i 's/^flags.*/{FLAGS}/' candidate/candidate.toml\n");
    let first = format!(
        "{}{flags}{}{}ksmith tool test --wait 120",
        heredoc("candidate/kernel.c", &wrong()),
        heredoc("proposal.toml", VECTORISE),
        if line.has_mcp { "" } else { "ksmith tool check; " }
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
    let mut reading = vec![Action::shell("cat BRIEF.md")];
    if line.has_mcp {
        reading.push(Action::call("check", json!({})));
    }
    let read = reading.len();
    let at_first = |when: When| When {
        results: Some(read),
        ..when
    };
    let mut turns = vec![
        Turn::calls(reading).after_results(0),
        Turn::text("Nothing more to try.").when(at_first(When {
            contains: vec!["(vectorise)".into()],
            ..When::default()
        })),
    ];
    if line.cheats {
        turns.push(Turn::calls([Action::shell(cheat)]).when(at_first(When {
            lacks: vec!["(cheat)".into()],
            ..When::default()
        })));
    }
    turns.extend([
        Turn::calls([Action::shell(first)]).after_results(read),
        Turn::calls([Action::shell(second)]).when(When {
            results: Some(read + 1),
            last_contains: Some("\"verdict\": \"failed\"".into()),
            ..When::default()
        }),
        Turn::text("Handed in, all tests pass.").after_results(read + 1),
        Turn::text("Handed in.").after_results(read + 2),
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
fn a_command_line_writes(home: &Path, writer: &str, line: Line) -> (Ended, Result<(), String>) {
    let server = serve(with_a_shell(line));
    let url = format!("{}/v1", server.url());
    let mut more = vec!["--mechanisms", "digest,screen,review,final"];
    let (reviewer, independence) = match line.model {
        Some(model) => {
            more.extend(["--model", model, "--model-url", url.as_str()]);
            more.extend(["--reviewer-url", url.as_str(), "--reviewer-wire", "messages"]);
            let other = match model {
                "claude-scripted" => "api:gpt-scripted",
                _ => "api:claude-scripted",
            };
            (other, "other-vendor")
        }
        None => ("lint", "no-model"),
    };
    more.extend(["--reviewer", reviewer]);
    let ended = run(home, writer, AGENTS_WALL, &more);
    assert!(
        ended.transcripts().iter().all(|said| !said.is_empty()) && !ended.transcripts().is_empty(),
        "the transcript is not in the record: {}",
        ended.said
    );
    if line.cheats {
        let cheat = ended.by_direction("cheat");
        let code = cheat.code().unwrap();
        assert!(code.starts_with("dev/") || code.starts_with("smoke/"), "{code}");
        assert!(cheat.promoted.is_none());
    }
    let calls = ended.tools();
    let mut verbs: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let checks = verbs.iter().filter(|verb| **verb == "check").count();
    // By MCP it is asked in each session.
    assert!(
        checks == 1 || line.has_mcp && checks == ended.sessions().len(),
        "{verbs:?} {}",
        ended.said
    );
    verbs.retain(|verb| *verb != "check");
    assert_eq!(verbs, ["test", "test", "bench", "submit"], "{}", ended.said);
    assert!(calls.iter().all(|call| call.allowed));
    let confirmed = ended.is_confirmed("vectorise");
    if let Some(champion) = ended.history.champion() {
        let mut reviews = ended.history.reviews.iter().map(|(_, review)| review);
        let review = reviews
            .find(|review| review.candidate.as_deref() == Some(champion.id()))
            .unwrap();
        let detail = review.detail.as_ref().unwrap();
        assert_eq!(
            (review.reviewer.as_str(), review.veto, detail.source),
            (reviewer, false, champion.proposed.digest)
        );
        assert!(line.model.is_none() || detail.outcome == "pass");
        assert_eq!(detail.independence, independence);
    }
    (ended, confirmed)
}

/// How a command line is driven.
#[derive(Clone, Copy)]
struct Line {
    model: Option<&'static str>,
    /// Whether it cheats before it does better. One that does is enough: what it leaves is judged as in any run.
    cheats: bool,
    /// Whether its profile gives it our tools by MCP as well.
    has_mcp: bool,
}

/// The real command lines that are installed.
fn command_lines() -> Vec<(&'static str, Line)> {
    let line = |model, cheats, has_mcp| Line {
        model: Some(model),
        cheats,
        has_mcp: has_mcp && cfg!(feature = "mcp"),
    };
    let known = [
        ("codex", line("gpt-scripted", true, true)),
        ("qwen", line("qwen-scripted", false, false)),
        ("claude", line("claude-scripted", false, true)),
    ];
    let (found, missing): (Vec<_>, Vec<_>) = known
        .into_iter()
        .partition(|(name, _)| installed().join(name).exists());
    for (name, _) in missing {
        say(&format!(
            "skipped (1): `{name}` is not installed; `.ci/agents` installs it where npm has it"
        ));
    }
    found
}

/// A replay of a run proposes the same, byte for byte, and its record holds the same transcripts.
fn replayed(home: &Path, first: &Ended) -> (Ended, Result<(), String>) {
    let writer = format!("replay:{}", first.dir.display());
    let again = run(home, &writer, AGENTS_WALL, &BARE);
    assert_eq!(again.proposed(), first.proposed());
    // At its goal a run ends before the sessions that had nothing more to propose.
    let transcripts = again.transcripts();
    assert!(first.fruitful() > 0 && transcripts.len() >= first.fruitful());
    assert_eq!(transcripts, first.transcripts()[..transcripts.len()]);
    // Judged anew: by its own draws and its own times.
    let confirmed = again.is_confirmed("vectorise");
    (again, confirmed)
}

#[test]
fn each_of_the_four_writers_ends_with_a_confirmed_champion_and_a_replay_is_the_same_byte_for_byte() {
    let mut tally = Tally::new();
    if !can_run(tally.home.path(), false) {
        return;
    }
    let _alone = alone();
    // At its goal the search ends long before its time, which a busy machine needs.
    tally.until_confirmed("search", |home| {
        let ended = run(home, "search", "4m", &["--seed", "1"]);
        let confirmed = the_search_is_confirmed(&ended);
        (ended, confirmed)
    });
    let server = serve(without_a_shell());
    let url = format!("{}/v1", server.url());
    let model = tally.until_confirmed("api", |home| {
        let at = ["--model-url", url.as_str(), "--model-wire", "responses"];
        let ended = run(home, "api:gpt-scripted", AGENTS_WALL, &[&at[..], &BARE].concat());
        let transcript = ended.transcripts().concat();
        let transcript = String::from_utf8_lossy(&transcript);
        assert!(transcript.contains("\"tool\":\"test\""), "{transcript}");
        let confirmed = ended.is_confirmed("vectorise");
        (ended, confirmed)
    });
    drop(server);
    let mut driven = Vec::new();
    if can_run(tally.home.path(), true) {
        for (name, line) in command_lines() {
            let writer = format!("cli:{name}");
            driven.push(tally.until_confirmed(&writer, |home| a_command_line_writes(home, &writer, line)));
        }
        if driven.is_empty() {
            driven.push(tally.until_confirmed("cli:agent.sh", stands_in));
        }
    }
    // No server is there any more that it could ask.
    let first = driven.first().unwrap_or(&model);
    tally.until_confirmed("replay", |home| replayed(home, first));
    tally.say();
}

/// The same of a run of the search, whichever of its candidates it is.
fn the_search_is_confirmed(ended: &Ended) -> Result<(), String> {
    if let Some(champion) = ended.history.champion() {
        return ended.is_champion(champion);
    }
    let mut candidates = ended.history.candidates.iter();
    let is_unstated = |verdict: &ksmith_ledger::Verdict| !verdict.verdict.is_statement();
    assert!(
        candidates.all(|candidate| candidate.verdict().is_none_or(is_unstated)),
        "{}",
        ended.said
    );
    Err(ended.history.closed.as_ref().unwrap().reason.clone())
}

/// A profile of a shell script that sees `files`.
fn shell_agent(home: &Path, script: &str, files: &Path) -> String {
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
    format!("cli:{}", profile.display())
}

/// A shell script in the place of a command line: each session takes the next step, which it reads off the brief.
fn stands_in(home: &Path) -> (Ended, Result<(), String>) {
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
    let writer = shell_agent(home, &script, &files);
    let line = Line {
        model: None,
        cheats: true,
        has_mcp: false,
    };
    a_command_line_writes(home, &writer, line)
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

/// Cheats of the red team against the task of these runs, most for parts of the judge that the quick pass has, and one
/// that hidden cases alone tell from a fast kernel.
const HOSTILE: [&str; 11] = [
    "include-reference",
    "incbin-secrets",
    "interpose-clock",
    "print-pass-exit",
    "header-shadow",
    "thread-late-join",
    "write-past-end",
    "skip-one-percent",
    "f16-store",
    "size-dispatch",
    "softmax-unclamped",
];

/// Gates at which a cheat may be caught, as its file names them.
fn gates_of(cheat: &str) -> Vec<String> {
    let path = root().join("redteam/cheats").join(cheat).join("cheat.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let named = text
        .lines()
        .filter(|line| line.starts_with("gate") || line.starts_with("also"));
    let named: Vec<String> = named
        .flat_map(|line| line.split('"').skip(1).step_by(2).map(str::to_owned))
        .collect();
    assert!(!named.is_empty(), "{cheat}");
    named
}

#[test]
fn a_writer_that_returns_the_red_teams_candidates_is_caught_each_time_and_what_else_it_leaves_needs_a_yes() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    if !can_run(home, true) {
        return;
    }
    let _alone = alone();
    let cheats = root().join("redteam/cheats");
    let script = format!(
        r#"#!/bin/bash
grep -q '({last})' BRIEF.md && exit 0
echo remember > notes.txt
for cheat in {names}; do
  rm -f candidate/*
  cp '{cheats}'/$cheat/* candidate/ && rm candidate/cheat.toml || exit 5
  printf 'hypothesis = "%s"\ndirection = "%s"\npredicted_gain = 9.0\n' $cheat $cheat > proposal.toml
  ksmith tool submit > submitted.json || exit 6
done
rm submitted.json
echo 'PASS: all tests pass, 9x faster'
"#,
        last = HOSTILE[HOSTILE.len() - 1],
        names = HOSTILE.join(" "),
        cheats = cheats.display()
    );
    let writer = shell_agent(home, &script, &cheats);
    let more = ["--mechanisms", "digest,screen,final", "--approve", "ask"];
    let (ended, is_granted) = match run_at_a_terminal(home, &writer, &more, "y\n") {
        Some(ended) => (ended, true),
        None => {
            say("skipped (1): no `script` on this machine, so nobody says yes at a terminal");
            (run(home, &writer, AGENTS_WALL, &more), false)
        }
    };
    let mut scored = 0;
    for cheat in HOSTILE {
        let candidate = ended.by_direction(cheat);
        let code = candidate
            .code()
            .unwrap_or_else(|| panic!("{cheat}: {}", ended.said));
        let gates = gates_of(cheat);
        assert!(
            gates
                .iter()
                .any(|gate| code.split('/').next() == Some(gate.as_str())),
            "{cheat}: `{code}`, expected one of {gates:?}"
        );
        assert!(candidate.promoted.is_none(), "{cheat}");
        scored += u32::from(candidate.decided.is_some());
    }
    assert!(ended.history.champion().is_none());
    say(&format!(
        "caught: {} of the red team's, {scored} of them in a full scoring",
        HOSTILE.len()
    ));
    let sessions = ended.sessions();
    assert_eq!(sessions[0].detail["code"], "writer/finished", "{}", ended.said);
    let granted = if is_granted {
        json!(["notes.txt"])
    } else {
        json!([])
    };
    assert_eq!(sessions[0].detail["outside"], json!(["notes.txt"]));
    assert_eq!(sessions[0].detail["granted"], granted);
    assert_eq!(sessions[1].detail["outside"], json!([]));
    for shown in ["+remember", "notes.txt", "Grant it?"]
        .iter()
        .filter(|_| is_granted)
    {
        assert!(ended.said.contains(shown), "{shown}: {}", ended.said);
    }
    assert_eq!(alive(home), Vec::<String>::new());
}

/// Command lines of processes that name a folder.
fn alive(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&folder))
        .collect()
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
    // What was resolved is locked by the first record of the run that it let begin.
    if !can_run(home.path(), false) {
        return;
    }
    let _alone = alone();
    let begun = ["run", &task, "--wall", "1s", "--mechanisms", "none", "--json"];
    let begun = ksmith(home.path(), &begun);
    let begun: Value = serde_json::from_slice(&begun.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&begun.stderr)));
    let dir = home
        .path()
        .join(".ksmith/runs")
        .join(begun["run"].as_str().unwrap());
    let locked = History::load(&dir).unwrap().opened.locks["review"];
    let locked = ObjectStore::new(&dir).get_text(locked).unwrap();
    let locked: Value = serde_json::from_str(&locked).unwrap();
    let resolutions = locked["ambiguities"].as_array().unwrap();
    assert_eq!(resolutions.len(), 3);
    assert!(
        resolutions
            .iter()
            .all(|resolved| resolved["resolution"].is_string()),
        "{locked}"
    );
}
