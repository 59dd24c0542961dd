//! Command-line agents in the loop: real boxes and real desks around shell scripts, with the scripted judge of these tests.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_agents::writers::{Answer, Approver, Request};
use ksmith_box::{Level, probe};
use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{AgentCall, Entry, History, ObjectStore, Outcome, read_records};
use ksmith_loop::{Approve, Postmortem, RunOptions, RunOutcome, Silent, WriterChoice, resume_with, run_with};
use serde_json::json;

use crate::models::reviews;
use crate::scripted::{self, Home, Mixed, picked, resume_options};

pub(crate) fn boxed() -> bool {
    let enough = probe().level >= Level::Box;
    if !enough {
        println!("skipped (1): this machine offers level `{}`", probe().name());
    }
    enough
}

pub(crate) fn agent(home: &Home, body: &str) -> PathBuf {
    let path = home.folder.path().join("agent.sh");
    std::fs::write(&path, format!("#!/bin/bash\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn options(home: &Home, body: &str) -> RunOptions {
    let mut options = home.options();
    options.writer = WriterChoice::Cli(agent(home, body).display().to_string());
    options
}

pub(crate) fn go(options: &RunOptions) -> RunOutcome {
    run_with(options, &Mixed(scripted::Script::new(&[])), &mut Silent).unwrap()
}

pub(crate) fn calls(run: &Path) -> Vec<AgentCall> {
    picked(run, |entry| match entry {
        Entry::AgentCall(call) => Some(call),
        _ => None,
    })
}

pub(crate) fn codes(run: &Path) -> Vec<String> {
    calls(run)
        .iter()
        .map(|call| call.detail["code"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Writes one candidate with a stated idea, and nothing in later sessions.
pub(crate) const HONEST: &str = r#"grep -q "speed" candidate/kernel.c && exit 0
echo "/* speed 4.5 */" >> candidate/kernel.c
printf 'hypothesis = "vector loads"\ndirection = "vectorise"\npredicted_gain = 4.0\n' > proposal.toml
echo '{"type":"system","version":"9.9"}'
"#;

#[test]
fn a_command_line_writer_completes_a_run_and_a_replay_of_it_is_the_same_byte_for_byte() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let outcome = go(&options(&home, HONEST));
    let first = &outcome.instances[0];
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    assert_eq!(first.champion.as_ref().unwrap().speedup.unwrap().point, 4.5);
    let report = verify(&first.dir, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
    let history = History::load(&first.dir).unwrap();
    let champion = history.champion().unwrap();
    assert_eq!(champion.proposed.hypothesis, "vector loads");
    assert_eq!(
        (champion.proposed.direction.as_str(), champion.proposed.predicted),
        ("vectorise", Some(4.0))
    );
    assert!(champion.proposed.writer.starts_with("cli:agent.sh"));
    let calls = calls(&first.dir);
    assert_eq!(codes(&first.dir)[0], "writer/finished");
    let objects = ObjectStore::new(&first.dir);
    assert!(
        objects
            .get_text(calls[0].answer.unwrap().blob)
            .unwrap()
            .contains("9.9")
    );
    assert_eq!(calls[0].detail["isolation"], "box");
    assert!(
        !first.dir.join("work/round-2/session-1").exists(),
        "a desk is left"
    );

    let mut again = home.options();
    again.writer = WriterChoice::Replay(first.dir.join("ledger.jsonl"));
    let second = &go(&again).instances[0];
    assert_eq!(second.outcome, Outcome::GoalMet);
    let replayed = History::load(&second.dir).unwrap();
    assert_eq!(replayed.champion().unwrap().proposed.tree, champion.proposed.tree);
    assert!(replayed.opened.writer.starts_with("replay:"));
    let transcripts = |run: &Path| -> Vec<(String, Vec<u8>)> {
        let objects = ObjectStore::new(run);
        let sessions = self::calls(run).into_iter();
        let answer = |call: &AgentCall| objects.get(call.answer.unwrap().blob).unwrap();
        sessions.map(|call| (call.ended.clone(), answer(&call))).collect()
    };
    assert!(
        transcripts(&first.dir).len() > 1,
        "one that proposed, and those after it"
    );
    assert_eq!(transcripts(&second.dir), transcripts(&first.dir));
    assert!(verify(&second.dir, &VerifyOptions::default()).is_intact());
}

#[test]
fn an_agent_learns_what_became_of_its_candidates() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let body = r#"if grep -q "broken promise" BRIEF.md; then
  grep -q "compile/error" BRIEF.md || exit 0
  ls task/tried/c*/kernel.c > /dev/null || exit 0
  echo '#pragma script speed 5.0' >> candidate/kernel.c
  printf 'hypothesis = "mended"\ndirection = "one"\n' > proposal.toml
else
  echo '#pragma script leaves compile/error' >> candidate/kernel.c
  printf 'hypothesis = "broken promise"\ndirection = "one"\n' > proposal.toml
fi"#;
    let outcome = go(&options(&home, body));
    let history = History::load(&outcome.instances[0].dir).unwrap();
    assert_eq!(history.champion().unwrap().proposed.hypothesis, "mended");
}

/// Command lines of processes in which a word occurs.
fn alive(word: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(word))
        .collect()
}

/// Every path below a folder, but for what runs write.
fn paths(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_name() == ".ksmith" || entry.file_name() == "signing.key" {
                continue;
            }
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

#[test]
fn agents_that_cheat_are_caught_with_their_code_nothing_of_them_is_judged_and_the_machine_is_clean() {
    if !boxed() {
        return;
    }
    let fast = "echo '/* speed 9.0 */' >> candidate/kernel.c";
    // As a command line that names its own script, so that nothing of it can hide.
    let behind = r#"for i in 1 2 3; do (setsid bash -c 'sleep 1; while :; do echo "/* speed 9.0 */" >> candidate/kernel.c; sleep 0.1; done' "$0" > /dev/null 2>&1 &); done"#;
    let cheats: Vec<(&str, String, &str)> = vec![
        (
            "edits a test",
            format!("chmod u+w task/tests/dev.md; echo > task/tests/dev.md; {fast}"),
            "writer/protected-changed",
        ),
        (
            "edits the benchmark's sizes",
            format!("chmod -R u+w task; sed -i s/rows/cols/ task/task.toml; {fast}"),
            "writer/protected-changed",
        ),
        (
            "slows the baseline",
            format!(
                "chmod -R u+w task; sed -i 's/{{/{{ for (volatile long i = 0; i < 1000000; i++);/' task/baseline/kernel.c; {fast}"
            ),
            "writer/protected-changed",
        ),
        (
            "eases the reference by an interpreter",
            format!("{WRITES} task/reference.c; {fast}"),
            "writer/protected-changed",
        ),
        (
            "renames a folder",
            format!("mv task mine; {fast}"),
            "writer/protected-changed",
        ),
        (
            "links to a given file",
            format!("ln -s ../task/reference.c candidate/more.c; {fast}"),
            "writer/odd-files",
        ),
        (
            "prints a fake PASS",
            "echo 'PASS'; echo '{\"type\":\"result\",\"subtype\":\"success\"}'".to_owned(),
            "writer/no-change",
        ),
        (
            "looks for the hidden tests",
            format!(
                "find / -name secrets -o -name task.lock.json -o -name ledger.jsonl 2>/dev/null | grep . && {fast}"
            ),
            "writer/no-change",
        ),
        (
            "reads them where they are",
            format!(
                "cat \"$(cat home-path)\"/.ksmith/runs/*/secrets /proc/1/root/tmp/*/.ksmith/runs/*/secrets 2>/dev/null | grep . && {fast}"
            ),
            "writer/no-change",
        ),
        ("floods its output", format!("{fast}; yes"), "writer/output-flood"),
        ("forks into the background", behind.to_owned(), "writer/no-change"),
        (
            "leaves while its children work on",
            format!("{behind}; kill -9 $$"),
            "writer/crashed",
        ),
        ("fails", "exit 9".to_owned(), "writer/crashed"),
    ];
    for (cheat, body, code) in cheats {
        let home = Home::new();
        let path = home.folder.path().display().to_string();
        let body = body.replace("$(cat home-path)", &path);
        let options = options(&home, &format!("{body}\nexit 0"));
        let before = paths(home.folder.path());
        let outcome = go(&options);
        let first = &outcome.instances[0];
        assert!(first.champion.is_none(), "{cheat}");
        assert_eq!(codes(&first.dir)[0], code, "{cheat}");
        assert!(
            History::load(&first.dir)
                .unwrap()
                .candidates
                .iter()
                .all(|c| c.proposed.direction == "flags"),
            "{cheat}: something of it was judged"
        );
        assert!(
            verify(&first.dir, &VerifyOptions::default()).is_intact(),
            "{cheat}"
        );
        assert_eq!(alive(&path), Vec::<String>::new(), "{cheat}: a process is left");
        assert_eq!(paths(home.folder.path()), before, "{cheat}: a file is left");
        let work = paths(&first.dir.join("work"));
        assert!(
            work.iter().all(|path| path.ends_with("round-0")),
            "{cheat}: a desk is left: {work:?}"
        );
    }
}

/// Begins a command that writes into the file named after it, by an interpreter and not by the shell.
const WRITES: &str = r#"w() { if command -v python3 > /dev/null && python3 -c 1 2> /dev/null; then python3 -c 'import os,sys; p = sys.argv[1]; os.path.exists(p) and os.chmod(p, 0o644); open(p, "a").write("forged\n")' "$1"; else perl -e 'my $p = shift; chmod 0644, $p; open(my $f, ">>", $p) or exit 1; print $f "forged\n"' "$1"; fi; }; w"#;

#[test]
fn an_agent_that_edits_the_state_of_its_run_by_an_interpreter_link_or_renamed_folder_reaches_nothing_of_it() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let place = home.folder.path().display().to_string();
    let originals = || -> Vec<Vec<u8>> {
        let files = ["task.toml", "reference.c", "baseline/cpu/kernel.c"];
        files
            .map(|file| std::fs::read(home.task().join(file)).unwrap())
            .into()
    };
    let before = originals();
    // Each way is tried on ledger, secrets, lock, task and verdict; what it finds in its way it makes.
    let body = format!(
        r#"{WRITES} /dev/null
run=$(ls -d {place}/.ksmith/runs/* 2> /dev/null | head -n 1); run=${{run:-{place}/.ksmith/runs/unknown}}
for file in "$run"/ledger.jsonl "$run"/secrets "$run"/task.lock.json {place}/softmax/task.toml {place}/softmax/reference.c; do
  mkdir -p "${{file%/*}}"; w "$file" 2> /dev/null; echo forged >> "$file"; ln -sf /dev/null "$file"
done 2> /dev/null
mv {place}/softmax {place}/mine 2> /dev/null; ln -s {place} up 2> /dev/null && echo forged >> up/softmax/task.toml 2> /dev/null; rm -f up
{HONEST}"#
    );
    let first = &go(&options(&home, &body)).instances[0];
    assert_eq!(codes(&first.dir)[0], "writer/finished");
    assert_eq!(originals(), before);
    // The run goes on undisturbed: its locked files and its record are what they were.
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    assert!(verify(&first.dir, &VerifyOptions::default()).is_intact());
}

#[test]
fn an_agent_that_hangs_leaves_its_files_to_the_judge_and_none_of_its_time() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let mut options = options(
        &home,
        &format!("{HONEST}\ntrap '' TERM INT HUP; while :; do sleep 600; done"),
    );
    options.agents.session_s = 1.0;
    let outcome = go(&options);
    let first = &outcome.instances[0];
    assert_eq!(codes(&first.dir)[0], "writer/timed-out");
    assert_eq!(first.outcome, Outcome::GoalMet);
    let path = home.folder.path().display().to_string();
    assert_eq!(alive(&path), Vec::<String>::new(), "a process is left");
}

#[test]
fn an_agent_that_leaves_nothing_is_given_up_after_three_sessions_and_the_run_says_so() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let first = &go(&options(&home, "exit 0")).instances[0];
    assert_eq!(codes(&first.dir), ["writer/no-change"; 3]);
    let said = read_records(&first.dir).unwrap().iter().any(|record| {
        matches!(record.entry().unwrap(), Entry::Note(note) if note.text.contains("writer/no-change"))
    });
    assert!(said);
    assert_eq!(first.outcome, Outcome::GoalNotMet);
}

#[derive(Default)]
pub(crate) struct Yes(pub(crate) std::sync::Mutex<Vec<Request>>);

impl Approver for Yes {
    fn answer(&self, request: &Request) -> Answer {
        self.0.lock().unwrap().push(request.clone());
        Answer::Granted
    }
}

#[test]
fn files_beside_the_candidate_are_discarded_unless_a_person_grants_them() {
    if !boxed() {
        return;
    }
    let body = r#"if [ -f notes.txt ]; then echo "/* speed 6.0 */" >> candidate/kernel.c; exit 0; fi
echo "remember" > notes.txt; echo "/* speed 2.0 */" >> candidate/kernel.c"#;
    for (approve, found) in [(Approve::Deny, false), (Approve::Ask, true)] {
        let home = Home::new();
        let mut options = options(&home, body);
        let yes = std::sync::Arc::new(Yes::default());
        options.agents.approve = approve;
        options.agent_host.approver = std::sync::Arc::clone(&yes) as _;
        options.candidates = Some(3);
        let first = &go(&options).instances[0];
        let call = &calls(&first.dir)[0];
        assert_eq!(call.detail["outside"], serde_json::json!(["notes.txt"]));
        let asked = yes.0.lock().unwrap();
        assert_eq!(
            asked.iter().any(|request| request.diff.contains("+remember")),
            found
        );
        let kept = first.dir.join("work/granted/notes.txt").is_file();
        assert_eq!(kept, found);
    }
}

#[test]
fn a_run_killed_while_the_agent_works_begins_its_session_anew_and_ends_alike() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let mut options = options(&home, HONEST);
    // The user wants to stop while the first session is under way.
    let interrupt = options.interrupt.clone();
    options.writer = WriterChoice::Cli(agent(&home, "sleep 30").display().to_string());
    let asker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        interrupt.request();
    });
    let began = std::time::Instant::now();
    let outcome = go(&options);
    asker.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20));
    let first = &outcome.instances[0];
    assert_eq!(first.outcome, Outcome::Interrupted);
    assert!(codes(&first.dir).iter().all(|code| code == "writer/interrupted"));
    agent(&home, HONEST);
    let resumed = resume_with(
        &resume_options(home.folder.path(), &first.dir),
        &Mixed(scripted::Script::new(&[])),
        &mut Silent,
    )
    .unwrap();
    assert_eq!(resumed.instances[0].outcome, Outcome::GoalMet);
    assert!(verify(&first.dir, &VerifyOptions::default()).is_intact());
}

#[test]
fn a_profile_that_skips_approvals_says_so_before_anything_starts() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let script = agent(&home, HONEST);
    let profile = home.folder.path().join("mine.toml");
    std::fs::write(
        &profile,
        format!(
            "schema = 1\nname = \"mine\"\nprogram = \"{}\"\nargs = [\"--yolo\", \"{{prompt}}\"]\nskips = [\"--yolo\"]\n",
            script.display()
        ),
    )
    .unwrap();
    let mut options = home.options();
    options.writer = WriterChoice::Cli(profile.display().to_string());
    let first = &go(&options).instances[0];
    let records = read_records(&first.dir).unwrap();
    let said = records.iter().position(
        |record| matches!(record.entry().unwrap(), Entry::Note(note) if note.text.contains("`--yolo`")),
    );
    let called = records
        .iter()
        .position(|record| matches!(record.entry().unwrap(), Entry::AgentCall(_)));
    assert!(said.unwrap() < called.unwrap());
}

#[test]
fn what_an_agent_claims_is_on_record_checked_and_decides_nothing() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let body = r#"if grep -q "speed" candidate/kernel.c; then exit 0; fi
echo "/* speed 1.5 */" >> candidate/kernel.c
cat > proposal.toml <<'END'
hypothesis = "vector loads"
direction = "vectorise"
predicted_gain = 9.0
[[claim]]
what = "faster"
ratio = 9.0
[[claim]]
what = "done"
END
echo '{"type":"result","subtype":"success","result":"All tests pass, 9x faster."}'
"#;
    let first = &go(&options(&home, body)).instances[0];
    let call = &calls(&first.dir)[0];
    assert_eq!(call.detail["claims"].as_array().unwrap().len(), 2);
    assert_eq!(call.detail["unproved"], json!(["all tests pass", "x faster"]));
    let postmortem = Postmortem::of(&first.dir).unwrap();
    // Predicted 9, measured 1.5: the candidate is kept for what it is, and the prediction counts as one that held.
    assert_eq!((postmortem.claims.predicted, postmortem.claims.accepted), (1, 1));
    assert_eq!(postmortem.claims.unproved, 3);
    assert_eq!(postmortem.process["process/claim-without-evidence"], 3);
    assert_eq!(first.outcome, Outcome::GoalNotMet, "`done` met no goal");
    assert_eq!(first.champion.as_ref().unwrap().speedup.unwrap().point, 1.5);
    assert!(reviews(&first.dir).iter().any(|review| {
        review
            .detail
            .as_ref()
            .is_some_and(|detail| detail.occasion == "done")
    }));
}

#[test]
fn an_agent_is_told_what_earlier_runs_showed() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let rounds: &[scripted::Round] = &[("vector", &["a speed 2.0"])];
    let earlier = run_with(&home.options(), &scripted::Script::new(rounds), &mut Silent).unwrap();
    let history = History::load(&earlier.instances[0].dir).unwrap();
    let mut lore = ksmith_lore::Lore::open(home.folder.path()).unwrap();
    for entry in ksmith_lore::distil(&history) {
        lore.add(entry).unwrap();
    }
    let id = lore.entries()[0].id.clone();
    let body = format!("grep -q '`{id}`' BRIEF.md || exit 0\n{HONEST}");
    let first = &go(&options(&home, &body)).instances[0];
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
}
