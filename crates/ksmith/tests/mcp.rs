//! `ksmith mcp` as an agent's client meets it: the protocol over standard input and output, eight tools, one envelope.
#![cfg(feature = "mcp")]
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use ksmith_agents::tools::{Called, Envelope, Log, Server, ToolVerdict, Verb, Verbs};
use serde_json::{Value, json};

struct Probes;

impl Verbs for Probes {
    fn call(&self, verb: Verb, arguments: &Value) -> Envelope {
        let verdict = match verb {
            Verb::Test => ToolVerdict::Failed,
            _ => ToolVerdict::Info,
        };
        Envelope::new(verb, verdict, arguments.to_string()).code("dev/mismatch")
    }
}

impl Log for Probes {
    fn write(&self, _: &Called) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_protocol_offers_eight_tools_and_their_envelopes() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("tools.sock");
    let _server = Server::start(&socket, Arc::new(Probes), Arc::new(Probes)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ksmith"))
        .args(["mcp", "--socket"])
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    let mut hear = |id: u64| -> Value {
        loop {
            let line = lines.next().expect("the server goes on").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    };
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    assert_eq!(hear(1)["serverInfo"]["name"], "ksmith");
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let tools = hear(2)["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, Verb::ALL.map(Verb::name));
    say(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "test", "arguments": {} } }));
    let answer = hear(3);
    let envelope: Envelope = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (envelope.verdict, envelope.code.as_deref()),
        (ToolVerdict::Failed, Some("dev/mismatch"))
    );
    say(json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": { "name": "promote" } }));
    assert_eq!(hear(4)["isError"], true);
    drop(input);
    assert!(child.wait().unwrap().success());
}
