//! What one round of an agent costs besides model, compiler and judge: the desk, the box, the tools' socket, reading what
//! is left. The bound is 50 ms (issue "Writers and reviewers").

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use divan::Bencher;
use ksmith_agents::tools::{Called, Envelope, Log, Server, ToolVerdict, Verb, Verbs, ask};
use ksmith_agents::writers::{
    AgentBox, Desk, Facts, Laid, Profile, Said, Session, Snapshot, Sockets, Values, decide, find, run,
};

fn main() {
    ksmith_box::intercept_with(&[ksmith_agents::writers::ROLE]);
    divan::main();
}

struct Nothing;

impl Verbs for Nothing {
    fn call(&self, verb: Verb, _: &serde_json::Value) -> Envelope {
        Envelope::new(verb, ToolVerdict::Info, "nothing")
    }
}

impl Log for Nothing {
    fn write(&self, _: &Called) -> std::io::Result<()> {
        Ok(())
    }
}

fn laid() -> Laid {
    let source = "double reference(double x);\n".repeat(100).into_bytes();
    Laid {
        brief: "- one earlier candidate and what became of it\n".repeat(60),
        task: (0..12)
            .map(|number| (format!("part-{number}/source.c"), source.clone()))
            .collect(),
        candidate: Snapshot {
            files: [("kernel.c".to_owned(), source)].into(),
            oddities: Vec::new(),
        },
        ..Laid::default()
    }
}

/// A whole round around a program that does nothing.
#[divan::bench(sample_count = 40)]
fn whole_round(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().unwrap();
    let profile = Profile::command(Path::new("/bin/true"));
    let found = find(&profile, None).unwrap();
    let laid = laid();
    bencher.bench_local(|| {
        let desk = Desk::lay(&home.path().join("session"), &laid).unwrap();
        let sockets = home.path().join("s");
        std::fs::create_dir_all(&sockets).unwrap();
        let tools = sockets.join("tools.sock");
        let server = Server::start(&tools, Arc::new(Nothing), Arc::new(Nothing)).unwrap();
        let session = Session {
            profile: &profile,
            found: &found,
            desk: &desk,
            values: Values::default(),
            sockets: Sockets {
                folder: Some(sockets),
                gateway: None,
                tools: Some(tools),
            },
            ksmith: None,
            mcp: false,
            cage: AgentBox::new(&desk),
        };
        let ran = run(&session, &|| true).unwrap();
        drop(server);
        let candidate = desk.candidate();
        let ending = decide(&Facts {
            ended: Some(ran.ended),
            protected: desk.changed_given(),
            changed: candidate.files != desk.began_with().files,
            said: Said::read(&ran.stdout),
            ..Facts::default()
        });
        assert_eq!(ending.code, "writer/no-change");
        assert!(desk.outside().is_empty());
        desk.clear().unwrap();
        ending
    });
}

/// The desk alone.
#[divan::bench]
fn desk_laid_and_read(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().unwrap();
    let laid = laid();
    bencher.bench_local(|| {
        let desk = Desk::lay(&home.path().join("session"), &laid).unwrap();
        (desk.candidate(), desk.changed_given(), desk.outside())
    });
}

/// One short call of a tool over its socket.
#[divan::bench]
fn tool_call(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("tools.sock");
    let _server = Server::start(&socket, Arc::new(Nothing), Arc::new(Nothing)).unwrap();
    bencher.bench_local(|| ask(&socket, "task", &serde_json::Value::Null, Duration::ZERO).unwrap());
}
