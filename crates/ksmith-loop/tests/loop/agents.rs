//! Agents in the loop: real boxes and real desks around shell scripts, with the scripted judge of these tests.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_agents::gateway::{
    Endpoint, Gateway, Limits, Matching, Meter, NoRecord, Options as GatewayOptions, Replay, Wire,
};
use ksmith_agents::review::SameVendor;
use ksmith_agents::writers::{Answer, Approver, Request};
use ksmith_box::{Level, probe};
use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{
    AgentCall, Entry, History, Kind, ModelCall, ModelSent, ObjectStore, Outcome, read_records,
};
use ksmith_loop::arena::{Arena, ArenaError};
use ksmith_loop::writer::{Writer, WriterError};
use ksmith_loop::{
    Approve, BuiltIn, InstanceOutcome, Postmortem, ResumeOptions, ReviewerChoice, RunOptions, RunOutcome,
    Sandbox, Setting, Silent, Workshop, WriterChoice, recorded_calls, resume_with, run_with,
};
use ksmith_scripted::{Action, Fault, Options, Script, ScriptedServer, Turn};
use ksmith_task::{Backend, Instance};
use serde_json::json;

use crate::scripted::{self, Home};

/// The scripted judge and the real writers.
struct Mixed(scripted::Script);

impl Workshop for Mixed {
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError> {
        self.0.arena(instance, backend, run, sandbox)
    }

    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        BuiltIn.writer(choice, setting)
    }
}

fn boxed() -> bool {
    let enough = probe().level >= Level::Box;
    if !enough {
        println!("skipped (1): this machine offers level `{}`", probe().name());
    }
    enough
}

fn agent(home: &Home, body: &str) -> PathBuf {
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

fn go(options: &RunOptions) -> RunOutcome {
    run_with(options, &Mixed(scripted::Script::new(&[])), &mut Silent).unwrap()
}

fn calls(run: &Path) -> Vec<AgentCall> {
    read_records(run)
        .unwrap()
        .iter()
        .filter_map(|record| match record.entry().unwrap() {
            Entry::AgentCall(call) => Some(call),
            _ => None,
        })
        .collect()
}

fn codes(run: &Path) -> Vec<String> {
    calls(run)
        .iter()
        .map(|call| call.detail["code"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Writes one candidate with a stated idea, and nothing in later sessions.
const HONEST: &str = r#"grep -q "speed" candidate/kernel.c && exit 0
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
        &ResumeOptions {
            run: first.dir.clone(),
            home: home.folder.path().to_owned(),
            agent_host: Default::default(),
            interrupt: Default::default(),
            command: Vec::new(),
            signing_key: None,
        },
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

/// A model that writes one candidate with a stated idea, then has nothing more.
fn model() -> ScriptedServer {
    let kernel = "/* speed 4.5 */\nvoid softmax(void) {}\n";
    let note = "hypothesis = \"vector loads\"\ndirection = \"vectorise\"\npredicted_gain = 4.0\n";
    let write = |path: &str, text: &str| Action::call("write", json!({ "path": path, "text": text }));
    let script = [
        Turn::text("Nothing more.").if_contains("(vectorise)"),
        Turn::calls([
            write("task/reference.c", "double mine;"),
            write("../../escape.txt", "x"),
            write("notes.txt", "x"),
            Action::call("read", json!({ "path": "../../../ledger.jsonl" })),
            Action::call("list", json!({})),
        ])
        .after_results(0),
        Turn::calls([write("candidate/kernel.c", kernel), write("proposal.toml", note)]).after_results(5),
        Turn::calls([Action::call("diff", json!({}))]).after_results(7),
        Turn::text("Done: it is 100 times faster, all tests PASS.").after_results(8),
    ];
    ScriptedServer::start(Options::new(Script::new(script))).unwrap()
}

fn with_model(home: &Home, server: &ScriptedServer, wire: Wire) -> RunOptions {
    let mut options = home.options();
    options.agents.model = Some("some-model".into());
    options.agents.endpoint = Endpoint {
        url: Some(format!("{}/v1", server.url())),
        wire: Some(wire),
        key_env: None,
    };
    options
}

fn model_calls(run: &Path) -> Vec<ModelCall> {
    read_records(run)
        .unwrap()
        .iter()
        .filter_map(|record| match record.entry().unwrap() {
            Entry::ModelCall(call) => Some(call),
            _ => None,
        })
        .collect()
}

#[test]
fn a_plain_model_completes_a_run_in_each_wire_format_and_cannot_leave_its_desk() {
    for wire in Wire::ALL {
        let (home, server) = (Home::new(), model());
        let mut options = with_model(&home, &server, wire);
        options.writer = WriterChoice::Api("some-model".into());
        let first = &go(&options).instances[0];
        assert_eq!(first.outcome, Outcome::GoalMet, "{wire}: {}", first.reason);
        let call = &calls(&first.dir)[0];
        assert_eq!(call.detail["code"], "writer/finished");
        assert_eq!(
            call.detail["attempts_on_given_files"],
            json!(["task/reference.c"])
        );
        assert_eq!(call.detail["outside"], json!([]));
        let transcript = ObjectStore::new(&first.dir)
            .get_text(call.answer.unwrap().blob)
            .unwrap();
        assert!(
            transcript.contains("was not granted") && transcript.contains("there is no file"),
            "{transcript}"
        );
        assert!(!home.folder.path().join("escape.txt").exists());
        let asked = model_calls(&first.dir);
        assert!(asked.len() >= 4 && asked.iter().all(|call| call.wire == wire.name()));
        assert!(asked.iter().all(|call| call.whole && call.response.is_some()));
        assert!(verify(&first.dir, &VerifyOptions::default()).is_intact());
        let tools = read_records(&first.dir).unwrap().iter().any(|record| {
            matches!(record.entry().unwrap(), Entry::ToolCall(call) if call.tool == "diff" && call.allowed)
        });
        assert!(tools);
    }
}

/// An agent that asks its model over HTTP, as any would, and does what it likes with the answer.
const ASKS: &str = r#"ask() {
  body='{"model":"mine","messages":[{"role":"user","content":"hello"}]}'
  exec 3<>/dev/tcp/127.0.0.1/8790 || return 1
  printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' "$OPENAI_API_KEY" "${#body}" "$body" >&3
  cat <&3
}
"#;

#[test]
fn a_command_line_reaches_its_model_through_the_gateway_alone() {
    if !boxed() {
        return;
    }
    let server = ScriptedServer::start(Options::new(Script::new([Turn::text("do it")]))).unwrap();
    let home = Home::new();
    let mut options = with_model(&home, &server, Wire::Chat);
    let body = format!("{ASKS}\nask | grep -q 'do it' || exit 3\n{HONEST}");
    options.writer = WriterChoice::Cli(agent(&home, &body).display().to_string());
    let first = &go(&options).instances[0];
    assert_eq!(codes(&first.dir)[0], "writer/finished");
    assert_eq!(first.outcome, Outcome::GoalMet);
    let asked = model_calls(&first.dir);
    assert_eq!(
        (asked[0].model.as_str(), asked[0].status),
        ("some-model", Some(200))
    );
}

#[test]
fn a_success_without_an_answered_call_is_an_api_error_and_nothing_is_judged() {
    if !boxed() {
        return;
    }
    let server = ScriptedServer::start(Options::new(Script::new([Turn::fault(Fault::Status(500))]))).unwrap();
    let home = Home::new();
    let mut options = with_model(&home, &server, Wire::Chat);
    let body = format!(
        "{ASKS}\nask > /dev/null\necho '/* speed 9 */' >> candidate/kernel.c\necho '{{\"type\":\"result\",\"subtype\":\"success\"}}'\nexit 0"
    );
    options.writer = WriterChoice::Cli(agent(&home, &body).display().to_string());
    let first = &go(&options).instances[0];
    assert!(codes(&first.dir).iter().all(|code| code == "writer/api-error"));
    assert!(first.champion.is_none());
}

#[test]
fn a_writer_that_spends_over_its_budget_is_stopped_one_call_later_at_most() {
    if !boxed() {
        return;
    }
    let server = ScriptedServer::start(Options::new(Script::new([Turn::text("more")]))).unwrap();
    let home = Home::new();
    let prices = home.folder.path().join("prices.toml");
    std::fs::write(
        &prices,
        "schema = 1\ndate = \"2026-12-01\"\n[[model]]\nname = \"some-model\"\ninput = 10000.0\noutput = 10000.0\n\
         checked = \"2026-12-01\"\nsource = \"this test\"\n",
    )
    .unwrap();
    let mut options = with_model(&home, &server, Wire::Chat);
    options.agents.prices = Some(prices);
    // One call of 120 tokens costs 1.20.
    options.cost_usd = Some(2.0);
    let body = format!("{ASKS}\nwhile :; do ask > /dev/null; done");
    options.writer = WriterChoice::Cli(agent(&home, &body).display().to_string());
    let first = &go(&options).instances[0];
    assert_eq!(codes(&first.dir), ["writer/budget-spent"]);
    let asked = model_calls(&first.dir);
    let cost: f64 = asked.iter().map(|call| call.cost_usd).sum();
    assert_eq!(asked.len(), 2);
    assert!((2.0..2.5).contains(&cost), "{cost}");
}

#[test]
fn a_run_cut_short_repeats_no_paid_call_of_its_model_and_loses_no_cost() {
    let home = Home::new();
    let kernel = "/* speed 4.5 */\nvoid softmax(void) {}\n";
    let write = |path: &str, text: &str| Action::call("write", json!({ "path": path, "text": text }));
    let mut slow = Turn::calls([write(
        "proposal.toml",
        "hypothesis = \"h\"\ndirection = \"vectorise\"\n",
    )])
    .after_results(2);
    slow.delay_ms = 1500;
    let script = [
        Turn::text("Nothing more.").if_contains("(vectorise)"),
        Turn::calls([
            write("candidate/kernel.c", kernel),
            Action::call("check", json!({})),
        ])
        .after_results(0),
        slow,
        Turn::text("Done.").after_results(3),
    ];
    let server = ScriptedServer::start(Options::new(Script::new(script))).unwrap();
    let mut options = with_model(&home, &server, Wire::Chat);
    options.writer = WriterChoice::Api("some-model".into());
    let interrupt = options.interrupt.clone();
    // The wish comes while the second answer is on its way.
    let asker = std::thread::spawn({
        let seen = home.folder.path().join(".ksmith/runs");
        move || {
            let sent = || {
                let run = std::fs::read_dir(&seen).ok()?.next()?.ok()?.path();
                let records = read_records(&run).ok()?;
                let sent = records
                    .iter()
                    .filter(|record| record.kind == ksmith_ledger::Kind::ModelSent);
                Some(sent.count())
            };
            let began = std::time::Instant::now();
            while sent().is_none_or(|sent| sent < 2) && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(10));
            }
            interrupt.request();
        }
    });
    let first = go(&options).instances.remove(0);
    asker.join().unwrap();
    assert_eq!(first.outcome, Outcome::Interrupted);
    let asked = server.seen().len();
    assert_eq!(asked, 2);
    let resumed = resume_with(
        &ResumeOptions {
            run: first.dir.clone(),
            home: home.folder.path().to_owned(),
            agent_host: Default::default(),
            interrupt: Default::default(),
            command: Vec::new(),
            signing_key: None,
        },
        &Mixed(scripted::Script::new(&[])),
        &mut Silent,
    )
    .unwrap();
    assert_eq!(resumed.instances[0].outcome, Outcome::GoalMet);
    let calls = model_calls(&first.dir);
    let served: Vec<&ModelCall> = calls.iter().filter(|call| call.served_from.is_some()).collect();
    assert_eq!(
        served.len(),
        2,
        "both answers of the cut step are served from the record"
    );
    assert!(served.iter().all(|call| call.cost_usd == 0.0));
    // What is new is the rest of that conversation and those of later sessions.
    assert_eq!(server.seen().len() - asked, calls.len() - 2 - served.len());
    assert!(verify(&first.dir, &VerifyOptions::default()).is_intact());
}

/// A model that writes one candidate in three calls, and one that reviews and agrees; both on one server.
fn writer_and_reviewer(delay_ms: u64) -> ScriptedServer {
    let write = |path: &str, text: &str| Action::call("write", json!({ "path": path, "text": text }));
    let kernel = "/* speed 4.5 */\nvoid softmax(void) {}\n";
    let note = "hypothesis = \"vector loads\"\ndirection = \"vectorise\"\npredicted_gain = 4.0\n";
    let writer = [
        Turn::text("Nothing more.").if_contains("(vectorise)"),
        Turn::calls([
            write("candidate/kernel.c", kernel),
            Action::call("check", json!({})),
        ])
        .after_results(0),
        Turn::calls([write("proposal.toml", note)]).after_results(2),
        Turn::text("Done.").after_results(3),
    ];
    let turns = Turn::agreeing()
        .into_iter()
        .chain(writer)
        .map(|turn| Turn { delay_ms, ..turn });
    ScriptedServer::start(Options::new(Script::new(turns))).unwrap()
}

/// A run with a model of one vendor as its writer and one of another as its reviewer.
fn reviewed(home: &Home, url: &str, wire: Wire) -> RunOptions {
    let mut options = home.options();
    let endpoint = Endpoint {
        url: Some(format!("{url}/v1")),
        wire: Some(wire),
        key_env: None,
    };
    options.agents.endpoint = endpoint.clone();
    options.writer = WriterChoice::Api("gpt-scripted".into());
    options.review.reviewer = ReviewerChoice::Api("claude-scripted".into());
    options.review.endpoint = endpoint;
    options
}

fn reviews(run: &Path) -> Vec<ksmith_ledger::Reviewed> {
    read_records(run)
        .unwrap()
        .iter()
        .filter_map(|record| match record.entry().unwrap() {
            Entry::Reviewed(reviewed) => Some(reviewed),
            _ => None,
        })
        .collect()
}

#[test]
fn a_model_of_another_vendor_reviews_what_a_model_wrote_in_each_wire_format() {
    for wire in Wire::ALL {
        let (home, server) = (Home::new(), writer_and_reviewer(0));
        let first = &go(&reviewed(&home, &server.url(), wire)).instances[0];
        assert_eq!(first.outcome, Outcome::GoalMet, "{wire}: {}", first.reason);
        let held = reviews(&first.dir);
        assert!(held.iter().all(|review| review.reviewer == "api:claude-scripted"));
        let crown = held
            .iter()
            .filter_map(|review| review.detail.as_ref())
            .find(|detail| detail.occasion == "crown")
            .unwrap();
        assert_eq!(
            (crown.outcome.as_str(), crown.independence.as_str()),
            ("pass", "other-vendor")
        );
        let history = History::load(&first.dir).unwrap();
        assert_eq!(history.champion().unwrap().proposed.digest, crown.source);
        let roles: std::collections::BTreeSet<String> = model_calls(&first.dir)
            .into_iter()
            .map(|call| call.role)
            .collect();
        assert_eq!(roles.into_iter().collect::<Vec<_>>(), ["reviewer", "writer"]);
        assert!(verify(&first.dir, &VerifyOptions::default()).is_intact());
    }
}

#[test]
fn a_reviewer_of_the_writers_vendor_is_refused_before_anything_is_asked() {
    let (home, server) = (Home::new(), writer_and_reviewer(0));
    let mut options = reviewed(&home, &server.url(), Wire::Chat);
    for (model, refused) in [("chatgpt-other", true), ("nobody-knows", true), ("qwen-x", false)] {
        options.review.reviewer = ReviewerChoice::Api(model.into());
        let result = run_with(&options, &Mixed(scripted::Script::new(&[])), &mut Silent);
        match result {
            Err(error) => {
                assert!(refused, "{model}: {error}");
                assert_eq!(error.exit_code(), ksmith_task::ExitCode::Usage);
                assert!(server.seen().is_empty(), "{model}");
            }
            Ok(outcome) => assert_eq!((refused, outcome.instances[0].outcome), (false, Outcome::GoalMet)),
        }
    }
    options.review.reviewer = ReviewerChoice::Api("chatgpt-other".into());
    options.review.same_vendor = SameVendor::Allowed;
    let first = &go(&options).instances[0];
    let held = reviews(&first.dir);
    let recorded = |review: &ksmith_ledger::Reviewed| {
        review
            .detail
            .as_ref()
            .is_some_and(|detail| detail.independence == "same-vendor-allowed")
    };
    assert!(!held.is_empty() && held.iter().all(recorded));
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
fn the_calls_on_record_play_a_run_again_without_a_model_and_its_transcript_is_the_same_byte_for_byte() {
    let write = |path: &str, text: &str| Action::call("write", json!({ "path": path, "text": text }));
    let note = "hypothesis = \"vector loads\"\ndirection = \"vectorise\"\n";
    let server = ScriptedServer::start(Options::new(Script::new([
        Turn::text("Nothing more.").if_contains("(vectorise)"),
        Turn::calls([
            write("candidate/kernel.c", "/* speed 4.5 */\nvoid softmax(void) {}\n"),
            write("proposal.toml", note),
        ])
        .after_results(0),
        Turn::text("Done.").after_results(2),
    ])))
    .unwrap();
    // What model and tools said; the brief before it tells how many seconds are left.
    let transcripts = |run: &Path| -> Vec<String> {
        let objects = ObjectStore::new(run);
        let text = |call: AgentCall| objects.get_text(call.answer.unwrap().blob).unwrap();
        let sessions: Vec<String> = calls(run).into_iter().map(text).collect();
        let lines = sessions.iter().flat_map(|session| session.lines());
        lines
            .filter(|line| !line.starts_with("{\"user\""))
            .map(str::to_owned)
            .collect()
    };
    for wire in Wire::ALL {
        let home = Home::new();
        let mut options = with_model(&home, &server, wire);
        options.writer = WriterChoice::Api("some-model".into());
        let first = go(&options).instances.remove(0);
        let asked = server.seen().len();
        let replay = Replay::of(recorded_calls(&first.dir).unwrap(), Matching::Order);
        let gateway = Gateway::start(GatewayOptions::replaying(
            wire,
            "some-model",
            replay,
            Meter::new(Limits::default()),
            Box::new(NoRecord),
        ))
        .unwrap();
        let key = gateway.dummy_key().to_owned();
        options.agents.endpoint = Endpoint {
            url: Some(format!("{}/v1", gateway.url())),
            wire: Some(wire),
            key_env: Some("KEY_OF_THE_REPLAY".into()),
        };
        options.agent_host.variable = std::sync::Arc::new(move |_| Some(key.clone()));
        let second = go(&options).instances.remove(0);
        assert_eq!(
            (first.outcome, second.outcome),
            (Outcome::GoalMet, Outcome::GoalMet),
            "{wire}"
        );
        let said = transcripts(&first.dir);
        assert!(said.len() > 4, "{wire}: {said:?}");
        assert_eq!(transcripts(&second.dir), said, "{wire}");
        let answers = |run: &Path| {
            model_calls(run)
                .into_iter()
                .map(|call| call.response)
                .collect::<Vec<_>>()
        };
        assert_eq!(answers(&second.dir), answers(&first.dir), "{wire}");
        assert_eq!((server.seen().len(), gateway.replay_left()), (asked, 0), "{wire}");
    }
}

/// Set for the process that the test of kills ends: home, server and writer.
const CHILD: [&str; 3] = [
    "KSMITH_PAID_TEST_HOME",
    "KSMITH_PAID_TEST_URL",
    "KSMITH_PAID_TEST_WRITER",
];
/// What one call of the scripted server costs at the prices of that test.
const CALL_USD: f64 = 1.2;

fn only_run(home: &Path) -> Option<PathBuf> {
    let run = std::fs::read_dir(home.join(".ksmith/runs")).ok()?.next()?.ok()?;
    let records = read_records(&run.path()).ok()?;
    (!records.is_empty()).then(|| run.path())
}

/// Begins the run in `home`, or goes on with the one there is.
fn paid_run(home: &Path, url: &str, writer: &str) -> RunOutcome {
    let workshop = Mixed(scripted::Script::new(&[]));
    if let Some(run) = only_run(home) {
        let options = ResumeOptions {
            run,
            home: home.to_owned(),
            agent_host: Default::default(),
            interrupt: Default::default(),
            command: Vec::new(),
            signing_key: None,
        };
        return resume_with(&options, &workshop, &mut Silent).unwrap();
    }
    let _ = std::fs::remove_dir_all(home.join(".ksmith"));
    let mut options = reviewed(&Home::new(), url, Wire::Chat);
    options.task = home.join("softmax");
    options.home = home.to_owned();
    options.signing_key = None;
    // Bounds are far above costs: no budget is to end this run.
    options.cost_usd = Some(1e6);
    options.agents.prices = Some(home.join("prices.toml"));
    if writer != "api" {
        options.agents.model = Some("gpt-scripted".into());
        options.writer = WriterChoice::Cli(writer.into());
    }
    run_with(&options, &workshop, &mut Silent).unwrap()
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn child_of_the_paid_run() {
    let [Some(home), Some(url), Some(writer)] = CHILD.map(|name| std::env::var(name).ok()) else {
        return;
    };
    paid_run(Path::new(&home), &url, &writer);
}

fn paid_home() -> Home {
    let home = Home::new();
    let row = |model: &str| {
        format!(
            "[[model]]\nname = \"{model}\"\ninput = 10000.0\noutput = 10000.0\nmax_output = 100\nchecked = \"2026-12-01\"\nsource = \"this test\"\n"
        )
    };
    let table = format!(
        "schema = 1\ndate = \"2026-12-01\"\n{}{}",
        row("gpt-scripted"),
        row("claude-scripted")
    );
    std::fs::write(home.folder.path().join("prices.toml"), table).unwrap();
    home
}

fn sent(run: &Path) -> Vec<ModelSent> {
    read_records(run)
        .unwrap()
        .iter()
        .filter_map(|record| match record.entry().unwrap() {
            Entry::ModelSent(sent) => Some(sent),
            _ => None,
        })
        .collect()
}

fn count(home: &Path, kind: Kind) -> usize {
    let records = only_run(home).and_then(|run| read_records(&run).ok());
    records.map_or(0, |records| {
        records.iter().filter(|record| record.kind == kind).count()
    })
}

/// Starts the run, or goes on with it, and ends it with `kill -9` once the record holds `number` more of `kind`.
/// `false` where the run ended by itself before.
fn killed_at(home: &Path, url: &str, writer: &str, kind: Kind, number: usize) -> bool {
    let before = count(home, kind);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "agents::child_of_the_paid_run", "--test-threads=1"])
        .envs(CHILD.into_iter().zip([home.to_str().unwrap(), url, writer]))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let ended = loop {
        if count(home, kind) >= before + number {
            break None;
        }
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{kind} {number} never came"
        );
        std::thread::sleep(Duration::from_millis(2));
    };
    // What was recorded as sent is on its way by now, and its answer is not.
    std::thread::sleep(Duration::from_millis(20));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        ended.is_none_or(|status| status.success()),
        "the run failed by itself"
    );
    ended.is_none()
}

/// A run that is never killed, for comparison: its calls.
fn unbroken(writer: &dyn Fn(&Home) -> String) -> usize {
    let (home, server) = (paid_home(), writer_and_reviewer(0));
    let writer = writer(&home);
    let first = paid_run(home.folder.path(), &server.url(), &writer)
        .instances
        .remove(0);
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    let seen = server.seen().len();
    assert_eq!(usize::try_from(first.models.calls).unwrap(), seen);
    assert!((first.models.cost_usd - seen as f64 * CALL_USD).abs() < 1e-6);
    seen
}

fn kills(writer: &dyn Fn(&Home) -> String, moments: &[(Kind, usize)]) {
    let control = unbroken(writer);
    let (home, server) = (paid_home(), writer_and_reviewer(100));
    let writer = writer(&home);
    let path = home.folder.path();
    let hits = moments
        .iter()
        .filter(|(kind, number)| killed_at(path, &server.url(), &writer, *kind, *number))
        .count();
    assert_eq!(hits, moments.len(), "a kill came too late");
    let outcome = paid_run(path, &server.url(), &writer);
    let first: &InstanceOutcome = &outcome.instances[0];
    assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    let (sent, answered) = (sent(&first.dir), model_calls(&first.dir));
    let lost: Vec<&ModelSent> = sent
        .iter()
        .filter(|sent| !answered.iter().any(|call| call.call == sent.call))
        .collect();
    // Sent again were those alone whose answers were on their way: no answer on record was paid for twice.
    assert_eq!(sent.len(), control + lost.len());
    assert!(!lost.is_empty() && answered.iter().any(|call| call.served_from.is_some()));
    // Nothing reached the server without standing in the record, and what stands there is charged.
    let seen = server.seen().len();
    assert!(
        seen <= sent.len(),
        "{seen} calls reached the server, {} are on record",
        sent.len()
    );
    let bounds: f64 = lost.iter().map(|sent| sent.bound_usd).sum();
    let expected = control as f64 * CALL_USD + bounds;
    assert!(
        (first.models.cost_usd - expected).abs() < 1e-6,
        "{} {expected}",
        first.models.cost_usd
    );
    assert!(first.models.cost_usd >= seen as f64 * CALL_USD);
    assert_eq!(usize::try_from(first.models.calls).unwrap(), sent.len());
    assert!((first.models.estimated_usd - bounds).abs() < 1e-6);
    let report = verify(&first.dir, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
    println!(
        "{hits} kills, {control} calls, {} on their way when the process died",
        lost.len()
    );
}

#[test]
fn kill_9_at_any_moment_repeats_no_paid_call_of_writer_or_reviewer_and_loses_no_cost() {
    kills(
        &|_| "api".to_owned(),
        &[
            // The critic's call on its way, and again; its answer on record; the plan's critique.
            (Kind::ModelSent, 1),
            (Kind::ModelSent, 1),
            (Kind::ModelCall, 1),
            (Kind::Reviewed, 1),
            // Within the writer's conversation: on its way, answered, its tool asked, the session written down.
            (Kind::ToolCall, 1),
            (Kind::ModelSent, 1),
            (Kind::AgentCall, 1),
            // The crown's review on its way, and answered; then a session that has nothing more to propose.
            (Kind::ModelSent, 1),
            (Kind::ModelCall, 1),
            (Kind::ModelSent, 1),
        ],
    );
}

#[test]
fn kill_9_of_a_run_with_a_command_line_repeats_no_paid_call_and_loses_no_cost() {
    if !boxed() {
        return;
    }
    let body = format!(
        "{ASKS}\nask > /dev/null\ngrep -q speed candidate/kernel.c && exit 0\nask > /dev/null\nsleep 0.3\nask > /dev/null\n{HONEST}"
    );
    kills(
        &|home| agent(home, &body).display().to_string(),
        &[
            (Kind::Plan, 1),
            (Kind::ModelCall, 1),
            (Kind::ModelSent, 1),
            (Kind::AgentCall, 1),
        ],
    );
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
