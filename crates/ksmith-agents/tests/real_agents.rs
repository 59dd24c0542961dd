//! The real command-line agents, in their box, over the gateway, against the scripted model server: a session that
//! edits a file, and the same session again from its recorded answers, without any server.
//!
//! `.ci/agents` installs them; where they are missing, each is skipped and counted.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking, as tests do, and say what they skip"
)]

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ksmith_agents::gateway::{
    Answered, Call, Gateway, Limits, Matching, Meter, Options, Price, Recorded, Replay, Secret, Sink,
    Upstream, Wire,
};
use ksmith_agents::writers::{
    AgentBox, Desk, Laid, Profile, Ran, Session, Snapshot, Sockets, Values, find, run,
};
use ksmith_box::{Level, probe};
use ksmith_scripted::{Action, Script, ScriptedServer, Turn, Usage};

ksmith_box::intercept_tests!(self::intercept);

fn intercept() {
    ksmith_box::intercept_with(&[ksmith_agents::writers::ROLE]);
}

const KEY: &str = "the-real-key-0123456789";
const WRITTEN: &[u8] = b"int fast;\n";

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Answered>>>);

impl Sink for Memory {
    fn call(&mut self, call: Call) -> io::Result<()> {
        if let Call::Answered(answered) = call {
            self.0.lock().unwrap().push(*answered);
        }
        Ok(())
    }
}

/// Where `.ci/agents` puts them.
fn installed(name: &str) -> Option<PathBuf> {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/agents/node_modules/.bin");
    bin.join(name).exists().then(|| bin.canonicalize().ok()).flatten()
}

fn search_path(bin: &Path) -> OsString {
    let mut path = bin.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Runs one session over `gateway` on a fresh desk; gives what was seen and the candidate that it left.
fn session(name: &str, bin: &Path, gateway: &mut Gateway) -> (Ran, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let profile = Profile::load(name).unwrap();
    let found = find(&profile, Some(&search_path(bin))).unwrap();
    let sockets = folder.path().join("s");
    std::fs::create_dir(&sockets).unwrap();
    let socket = sockets.join("gateway.sock");
    gateway.socket(&socket).unwrap();
    let values = Values {
        prompt: "Make candidate/kernel.c faster.".into(),
        key: gateway.dummy_key().to_owned(),
        model: gateway.model().to_owned(),
        turns: "10".into(),
        ..Values::default()
    };
    let (more, home) = Session::files(&profile, &values);
    let laid = Laid {
        brief: "Make it faster.".into(),
        candidate: Snapshot {
            files: [("kernel.c".to_owned(), b"int slow;\n".to_vec())].into(),
            oddities: Vec::new(),
        },
        more,
        home,
        ..Laid::default()
    };
    let desk = Desk::lay(&folder.path().join("session"), &laid).unwrap();
    let session = Session {
        profile: &profile,
        found: &found,
        desk: &desk,
        values,
        sockets: Sockets {
            folder: Some(sockets),
            gateway: Some(socket),
            tools: None,
        },
        ksmith: None,
        mcp: false,
        cage: AgentBox::new(&desk).wall(Duration::from_secs(120)),
    };
    let ran = run(&session, &|| true).unwrap();
    (ran, desk.candidate())
}

fn drives_a_session(name: &str, wire: Wire) {
    let Some(bin) = installed(name) else {
        println!("skipped (1): `{name}` is not installed; `.ci/agents` installs it where npm is");
        return;
    };
    if probe().level < Level::Box {
        println!("skipped (1): this machine offers level `{}`", probe().name());
        return;
    }
    let command = "printf 'int fast;\\n' > candidate/kernel.c";
    let server = ScriptedServer::start(ksmith_scripted::Options {
        key: Some(KEY.into()),
        ..ksmith_scripted::Options::new(Script::new([
            Turn::calls([Action::shell(command)])
                .after_results(0)
                .using(Usage {
                    input: 1000,
                    cached: 500,
                    output: 50,
                    ..Usage::default()
                }),
            Turn::text("Done.").after_results(1),
        ]))
    })
    .unwrap();
    let memory = Memory::default();
    let upstream = Upstream {
        url: format!("{}/v1", server.url()),
        wire,
        key: Some(Secret::new(KEY)),
    };
    let price = Price::flat("test", 1.0, 1.0);
    let options = Options::new(
        upstream,
        "scripted-1",
        price,
        Meter::new(Limits::default()),
        Box::new(memory.clone()),
    );
    let mut gateway = Gateway::start(options).unwrap();
    let (ran, candidate) = session(name, &bin, &mut gateway);
    let said = format!(
        "{:?}\n{}\n{}\n{:#?}",
        ran.ended,
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
        server
            .seen()
            .iter()
            .map(|seen| (&seen.path, seen.turn))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        candidate.files.get("kernel.c").map(Vec::as_slice),
        Some(WRITTEN),
        "{said}"
    );
    let answered = memory.0.lock().unwrap().clone();
    assert!(answered.len() >= 2, "{said}");
    for call in &answered {
        assert!(
            call.answer.is_success() && !call.is_estimated,
            "{:?}\n{said}",
            call.error
        );
        assert_eq!(call.answered_model.as_deref(), Some("scripted-1"));
    }
    let spent = gateway.spent();
    assert!(
        spent.input_tokens >= 1600 && spent.output_tokens >= 70,
        "{spent:?}"
    );
    assert!(!String::from_utf8_lossy(&ran.stdout).contains(KEY));
    drop((gateway, server));

    // The same again from the record: no server is there any more.
    let replay = Replay::of(answered.iter().map(Recorded::from), Matching::Order);
    let again = Memory::default();
    let options = Options::replaying(
        wire,
        "scripted-1",
        replay,
        Meter::new(Limits::default()),
        Box::new(again.clone()),
    );
    let mut gateway = Gateway::start(options).unwrap();
    let (ran, candidate) = session(name, &bin, &mut gateway);
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        candidate.files.get("kernel.c").map(Vec::as_slice),
        Some(WRITTEN),
        "{said}"
    );
    let bytes = |calls: &[Answered]| {
        calls
            .iter()
            .map(|call| call.answer.bytes.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes(&again.0.lock().unwrap()), bytes(&answered));
    assert_eq!(gateway.spent().calls, 0);
}

#[test]
fn codex_drives_a_session_and_its_replay() {
    drives_a_session("codex", Wire::Responses);
}

#[test]
fn qwen_code_drives_a_session_and_its_replay() {
    drives_a_session("qwen", Wire::Chat);
}

#[test]
fn claude_code_drives_a_session_and_its_replay() {
    drives_a_session("claude", Wire::Messages);
}
