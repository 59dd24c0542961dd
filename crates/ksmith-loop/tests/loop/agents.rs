//! Command-line agents in the loop: real boxes and real desks around shell scripts, with the scripted judge of these tests.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

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

#[test]
fn agents_that_cheat_are_caught_with_their_code_and_nothing_of_them_is_judged() {
    if !boxed() {
        return;
    }
    let fast = "echo '/* speed 9.0 */' >> candidate/kernel.c";
    for (cheat, code) in [
        (format!("chmod u+w task/tests/dev.md; echo > task/tests/dev.md; {fast}"), "writer/protected-changed"),
        (format!("mv task mine; {fast}"), "writer/protected-changed"),
        (format!("ln -s ../task/reference.c candidate/more.c; {fast}"), "writer/odd-files"),
        ("echo 'PASS'; echo '{\"type\":\"result\",\"subtype\":\"success\"}'".to_owned(), "writer/no-change"),
        ("find / -name secrets -o -name task.lock.json -o -name ledger.jsonl 2>/dev/null | grep . && echo '/* speed 9.0 */' >> candidate/kernel.c".to_owned(), "writer/no-change"),
        (format!("{fast}; yes"), "writer/output-flood"),
        ("exit 9".to_owned(), "writer/crashed"),
    ] {
        let home = Home::new();
        let outcome = go(&options(&home, &format!("{cheat}\nexit 0")));
        let first = &outcome.instances[0];
        assert!(first.champion.is_none(), "{cheat}");
        assert_eq!(codes(&first.dir)[0], code, "{cheat}");
        assert!(
            History::load(&first.dir).unwrap().candidates.iter().all(|c| c.proposed.direction == "flags"),
            "{cheat}: something of it was judged"
        );
    }
}

#[test]
fn an_agent_that_hangs_leaves_its_files_to_the_judge_and_none_of_its_time() {
    if !boxed() {
        return;
    }
    let home = Home::new();
    let mut options = options(&home, &format!("{HONEST}\nsleep 600"));
    options.agents.session_s = 1.0;
    let outcome = go(&options);
    let first = &outcome.instances[0];
    assert_eq!(codes(&first.dir)[0], "writer/timed-out");
    assert_eq!(first.outcome, Outcome::GoalMet);
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

struct Yes(std::sync::Mutex<Vec<Request>>);

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
        let yes = std::sync::Arc::new(Yes(std::sync::Mutex::default()));
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
