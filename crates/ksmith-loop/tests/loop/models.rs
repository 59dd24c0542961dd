//! Models in the loop: a plain one that writes, one behind a command line, one that reviews; every call over the gateway to a
//! scripted server, in each wire format.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ksmith_agents::gateway::{
    Endpoint, Gateway, Limits, Matching, Meter, NoRecord, Options as GatewayOptions, Replay, Wire,
};
use ksmith_agents::review::SameVendor;
use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{AgentCall, Entry, History, ModelCall, ObjectStore, Outcome, read_records};
use ksmith_loop::{
    Approve, ReviewerChoice, RunOptions, Silent, WriterChoice, recorded_calls, resume_with, run_with,
};
use ksmith_scripted::{Action, Fault, Options, Script, ScriptedServer, Turn};
use serde_json::json;

use crate::agents::{HONEST, Yes, agent, boxed, calls, codes, go};
use crate::scripted::{self, Home, Mixed, picked, resume_options};

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

pub(crate) fn model_calls(run: &Path) -> Vec<ModelCall> {
    picked(run, |entry| match entry {
        Entry::ModelCall(call) => Some(call),
        _ => None,
    })
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

#[test]
fn a_person_can_grant_a_model_a_file_beside_its_candidate_and_never_a_given_one() {
    for (approve, asked, outside) in [
        (Approve::Deny, 0, json!([])),
        (Approve::Ask, 1, json!(["notes.txt"])),
    ] {
        let (home, server) = (Home::new(), model());
        let mut options = with_model(&home, &server, Wire::Chat);
        options.writer = WriterChoice::Api("some-model".into());
        options.agents.approve = approve;
        let yes = Arc::new(Yes::default());
        options.agent_host.approver = Arc::clone(&yes) as _;
        let first = &go(&options).instances[0];
        let call = &calls(&first.dir)[0];
        assert_eq!(call.detail["outside"], outside);
        assert_eq!(
            call.detail["attempts_on_given_files"],
            json!(["task/reference.c"])
        );
        let requests = yes.0.lock().unwrap();
        let wishes = requests
            .iter()
            .filter(|request| request.what.contains("wants to write"));
        let wishes: Vec<_> = wishes.collect();
        // The path that leads off the desk is asked for as well, and exists for nobody, whatever the answer.
        assert!(
            wishes.len() >= asked && (asked > 0 || requests.is_empty()),
            "{requests:?}"
        );
        assert!(
            wishes
                .iter()
                .all(|request| request.diff.contains("+x") && !request.what.contains("task/"))
        );
        assert!(!home.folder.path().join("escape.txt").exists());
        assert_eq!(first.outcome, Outcome::GoalMet, "{}", first.reason);
    }
}

/// An agent that asks its model over HTTP, as any would, and does what it likes with the answer.
pub(crate) const ASKS: &str = r#"ask() {
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
    assert_eq!((asked.len(), server.seen().len()), (2, 2));
    assert!((2.0..2.5).contains(&cost), "{cost}");
    // Within the budget without its last call, and what is beyond it is shown.
    assert!(cost - asked[1].cost_usd < 2.0);
    assert_eq!((first.models.calls, first.reason.as_str()), (2, "cost"));
    assert!((first.models.over_budget_usd - (cost - 2.0)).abs() < 1e-9 && first.models.over_budget_usd > 0.3);
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
        &resume_options(home.folder.path(), &first.dir),
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
pub(crate) fn writer_and_reviewer(delay_ms: u64) -> ScriptedServer {
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
pub(crate) fn reviewed(home: &Home, url: &str, wire: Wire) -> RunOptions {
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

pub(crate) fn reviews(run: &Path) -> Vec<ksmith_ledger::Reviewed> {
    picked(run, |entry| match entry {
        Entry::Reviewed(reviewed) => Some(reviewed),
        _ => None,
    })
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
