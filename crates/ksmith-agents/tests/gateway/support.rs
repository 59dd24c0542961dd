//! Servers, records and a plain HTTP client for these tests.

use std::io::{self, Read as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ksmith_agents::gateway::{
    Answered, Call, Gateway, Limits, Meter, Options, Price, Secret, Sent, Sink, Upstream, Wire,
};
use ksmith_scripted::{Script, ScriptedServer};
use serde_json::{Value, json};

/// The real key: the scripted server lets in nothing else.
pub(crate) const KEY: &str = "the-real-key-0123456789";

/// A record kept in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(pub(crate) Arc<Mutex<Vec<Call>>>);

impl Sink for Memory {
    fn call(&mut self, call: Call) -> io::Result<()> {
        self.0.lock().unwrap().push(call);
        Ok(())
    }
}

impl Memory {
    pub(crate) fn sent(&self) -> Vec<Sent> {
        let calls = self.0.lock().unwrap();
        calls
            .iter()
            .filter_map(|call| match call {
                Call::Sent(sent) => Some((**sent).clone()),
                Call::Answered(_) => None,
            })
            .collect()
    }

    pub(crate) fn answered(&self) -> Vec<Answered> {
        let calls = self.0.lock().unwrap();
        calls
            .iter()
            .filter_map(|call| match call {
                Call::Answered(answered) => Some((**answered).clone()),
                Call::Sent(_) => None,
            })
            .collect()
    }
}

pub(crate) fn scripted(script: Script) -> ScriptedServer {
    scripted_in_pieces(script, None)
}

pub(crate) fn scripted_in_pieces(script: Script, piece_bytes: Option<usize>) -> ScriptedServer {
    ScriptedServer::start(ksmith_scripted::Options {
        key: Some(KEY.into()),
        piece_bytes,
        ..ksmith_scripted::Options::new(script)
    })
    .unwrap()
}

/// Ten dollars per million tokens in, a hundred out.
pub(crate) fn price() -> Price {
    Price::flat("test", 10.0, 100.0)
}

pub(crate) fn upstream(url: &str, wire: Wire) -> Upstream {
    Upstream {
        url: format!("{url}/v1"),
        wire,
        key: Some(Secret::new(KEY)),
    }
}

pub(crate) fn options(url: &str, wire: Wire, limits: Limits, memory: &Memory) -> Options {
    Options {
        timeout: Duration::from_secs(2),
        ..Options::new(
            upstream(url, wire),
            "pinned-1",
            price(),
            Meter::new(limits),
            Box::new(memory.clone()),
        )
    }
}

pub(crate) fn gateway(server: &ScriptedServer, wire: Wire, limits: Limits) -> (Gateway, Memory) {
    let memory = Memory::default();
    let gateway = Gateway::start(options(&server.url(), wire, limits, &memory)).unwrap();
    (gateway, memory)
}

pub(crate) fn request(wire: Wire, stream: bool, text: &str) -> Value {
    let content = json!([{"role": "user", "content": text}]);
    match wire {
        Wire::Chat => json!({"model": "dear", "stream": stream, "messages": content,
            "stream_options": {"include_usage": true}}),
        Wire::Responses => json!({"model": "dear", "stream": stream, "input": content}),
        Wire::Messages => json!({"model": "dear", "stream": stream, "messages": content, "max_tokens": 500}),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_whole: bool,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

pub(crate) fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None);
    config.build().new_agent()
}

pub(crate) fn post(url: &str, key: &str, wire: Wire, body: &Value) -> Got {
    let response = agent()
        .post(format!("{url}/v1{}", wire.endpoint()))
        .header("authorization", format!("Bearer {key}"))
        .send(body.to_string().as_bytes())
        .unwrap();
    let content_type = response.headers().get("content-type");
    let content_type = content_type
        .map_or("", |value| value.to_str().unwrap())
        .to_owned();
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    let is_whole = response.into_body().into_reader().read_to_end(&mut bytes).is_ok();
    Got {
        status,
        content_type,
        bytes,
        is_whole,
    }
}

pub(crate) fn ask(gateway: &Gateway, wire: Wire, stream: bool, text: &str) -> Got {
    post(
        &gateway.url(),
        gateway.dummy_key(),
        wire,
        &request(wire, stream, text),
    )
}
