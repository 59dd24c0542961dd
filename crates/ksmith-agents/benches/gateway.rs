//! What the gateway adds to a call: the same request to the scripted server, directly and through the gateway.
//!
//! The request is as large as the largest first request of a command-line agent (80 KB). The difference between
//! `direct` and `through` is the overhead per call, two new loopback connections included; the record is kept in
//! memory here (`cargo bench -p ksmith-ledger` measures an append).

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::io::Read as _;

use ksmith_agents::gateway::{
    Client, Gateway, Limits, Message, Meter, NoRecord, Options, Price, Redactor, Upstream, Wire, prepare,
};
use ksmith_scripted::{Script, ScriptedServer, Turn};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn request(stream: bool) -> Value {
    let tools: Vec<Value> = (0..20)
        .map(|number| {
            json!({"type": "function", "function": {"name": format!("tool_{number}"),
                "description": "words ".repeat(500), "parameters": {"type": "object"}}})
        })
        .collect();
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "x ".repeat(10_000)}],
        "stream_options": {"include_usage": true}, "tools": tools})
}

fn servers() -> (ScriptedServer, Gateway) {
    let script = Script::new([Turn::text("An answer of some length. ".repeat(100))]);
    let server = ScriptedServer::start(ksmith_scripted::Options::new(script)).unwrap();
    let upstream = Upstream {
        url: format!("{}/v1", server.url()),
        wire: Wire::Chat,
        key: None,
    };
    let meter = Meter::new(Limits::default());
    let options = Options::new(
        upstream,
        "m",
        Price::flat("bench", 1.0, 1.0),
        meter,
        Box::new(NoRecord),
    );
    (server, Gateway::start(options).unwrap())
}

fn post(agent: &ureq::Agent, url: &str, key: &str, body: &[u8]) -> usize {
    let response = agent
        .post(format!("{url}/v1/chat/completions"))
        .header("x-api-key", key)
        .send(body)
        .unwrap();
    let mut bytes = Vec::new();
    response
        .into_body()
        .into_reader()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes.len()
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().proxy(None).build().new_agent()
}

#[divan::bench(args = [false, true])]
fn direct(bencher: divan::Bencher<'_, '_>, stream: bool) {
    let (server, _gateway) = servers();
    let (agent, body) = (agent(), request(stream).to_string().into_bytes());
    bencher.bench(|| post(&agent, &server.url(), "none", &body));
}

#[divan::bench(args = [false, true])]
fn through(bencher: divan::Bencher<'_, '_>, stream: bool) {
    let (_server, gateway) = servers();
    let (agent, body) = (agent(), request(stream).to_string().into_bytes());
    bencher.bench(|| post(&agent, &gateway.url(), gateway.dummy_key(), &body));
}

#[divan::bench]
fn client(bencher: divan::Bencher<'_, '_>) {
    let (_server, gateway) = servers();
    let client = Client::new(&gateway, "writer");
    let messages = [Message::User("x ".repeat(40_000))];
    bencher.bench(|| client.chat(&messages, &[]).unwrap());
}

#[divan::bench]
fn preparing(bencher: divan::Bencher<'_, '_>) {
    let body = request(true).to_string().into_bytes();
    bencher.bench(|| prepare(Wire::Chat, &body, "m").unwrap());
}

#[divan::bench]
fn redacting(bencher: divan::Bencher<'_, '_>) {
    let body = request(true).to_string().into_bytes();
    let redactor = Redactor::default();
    bencher
        .counter(divan::counter::BytesCount::of_slice(&body))
        .bench(|| redactor.redact(&body));
}
