//! What is let in and through, and what is not.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use ksmith_agents::gateway::{Gateway, GatewayError, Limits, Options, Upstream, Wire};
use ksmith_http::{Reply, Request, Server};
use ksmith_scripted::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{KEY, Memory, agent, ask, gateway, options, post, request, scripted};

#[test]
fn only_the_model_endpoints_pass_and_only_with_the_key() {
    let behind = scripted(Script::new([Turn::text("ok")]));
    let (gateway, memory) = gateway(&behind, Wire::Responses, Limits::default());
    let key = gateway.dummy_key();
    let call = |method: &str, path: &str, key: &str| {
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", gateway.url()))
            .header("authorization", format!("Bearer {key}"))
            .body(request(Wire::Responses, false, "go").to_string().into_bytes())
            .unwrap();
        let config = agent()
            .configure_request(request)
            .allow_non_standard_methods(true)
            .build();
        agent().run(config).unwrap().status().as_u16()
    };
    for (method, path) in [
        ("POST", "/v1/files"),
        ("POST", "/v1/responses/compact"),
        ("POST", "/responses"),
        ("PUT", "/v1/responses"),
        ("DELETE", "/v1/responses"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/chat/completions"),
        ("POST", "http://example.org/v1/responses"),
    ] {
        if !path.starts_with("http") {
            assert_eq!(call(method, path, key), 404, "{method} {path}");
        }
    }
    for wrong in ["", KEY, "ksmith-dummy-00000000000000000000000000000000"] {
        assert_eq!(call("POST", "/v1/responses", wrong), 401, "{wrong}");
    }
    assert!(behind.seen().is_empty() && memory.sent().is_empty());
    assert_eq!(call("POST", "/v1/responses?beta=true", key), 200);
    assert_eq!(behind.seen()[0].path, "/v1/responses");
}

#[test]
fn the_list_of_models_holds_the_pinned_one() {
    let behind = scripted(Script::default());
    let (gateway, _) = gateway(&behind, Wire::Chat, Limits::default());
    let mut response = agent()
        .get(format!("{}/v1/models", gateway.url()))
        .header("x-api-key", gateway.dummy_key())
        .call()
        .unwrap();
    let list: Value = serde_json::from_str(&response.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!(list["data"][0]["id"], "pinned-1");
    assert!(behind.seen().is_empty());
}

#[test]
fn requests_are_bounded_and_what_acts_elsewhere_is_taken_out() {
    let behind = scripted(Script::new([Turn::text("ok")]));
    let memory = Memory::default();
    let mut options = options(&behind.url(), Wire::Responses, Limits::default(), &memory);
    options.request_bytes = 2000;
    let gateway = Gateway::start(options).unwrap();
    let send = |body: &Value| post(&gateway.url(), gateway.dummy_key(), Wire::Responses, body);
    let mut body = request(Wire::Responses, false, "go");
    body["tools"] = json!([{"type": "web_search"}, {"type": "function", "name": "shell", "parameters": {}}]);
    assert_eq!(send(&body).status, 200);
    assert_eq!(
        behind.seen()[0].body["tools"],
        json!([{"type": "function", "name": "shell", "parameters": {}}])
    );
    assert_eq!(memory.sent()[0].changed, ["dropped tool `web_search`"]);
    assert_eq!(send(&json!({"background": true, "input": "x"})).status, 400);
    assert_eq!(
        send(&request(Wire::Responses, false, &"x".repeat(3000))).status,
        413
    );
    assert_eq!(behind.seen().len(), 1);
}

#[test]
fn a_box_without_network_comes_in_by_the_socket() {
    let behind = scripted(Script::new([Turn::text("through the socket")]));
    let (mut gateway, memory) = gateway(&behind, Wire::Messages, Limits::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.sock");
    gateway.socket(&path).unwrap();
    let mut socket = UnixStream::connect(&path).unwrap();
    let body = request(Wire::Messages, true, "go").to_string();
    let head = format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n",
        gateway.dummy_key(),
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("socket"),
        "{answer}"
    );
    assert_eq!(memory.answered().len(), 1);
    drop(gateway);
    assert!(!path.exists());
}

/// A server that answers with the key it was given, as some do in their error texts.
fn telltale(status: u16) -> Server {
    let handler = move |request: Request, reply: Reply<'_>| {
        let key = request.header("authorization").unwrap_or_default().to_owned();
        let body = json!({"error": {"message": format!("Incorrect API key provided: {key}")},
            "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
        reply.send(
            status,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    };
    Server::tcp(0, ksmith_http::Limits::DEFAULT, Arc::new(handler)).unwrap()
}

#[test]
fn the_real_key_stays_out_of_the_record_and_away_from_the_agent() {
    for status in [401, 500] {
        let behind = telltale(status);
        let memory = Memory::default();
        let url = format!("http://{}", behind.address().unwrap());
        let gateway = Gateway::start(options(&url, Wire::Chat, Limits::default(), &memory)).unwrap();
        let mut body = request(
            Wire::Chat,
            false,
            "my key is ghp_0123456789abcdefghijABCDEFGHIJ012345",
        );
        body["metadata"] = json!({"note": KEY});
        let got = post(&gateway.url(), gateway.dummy_key(), Wire::Chat, &body);
        assert_eq!(got.status, status);
        assert!(
            got.text().contains("[redacted]") && !got.text().contains(KEY),
            "{}",
            got.text()
        );
        let record = format!("{:?}", memory.0.lock().unwrap());
        let answered = &memory.answered()[0];
        let stored = [answered.request.clone(), answered.answer.bytes.clone()].concat();
        for text in [record, String::from_utf8_lossy(&stored).into_owned()] {
            assert!(!text.contains(KEY) && !text.contains("ghp_0123"), "{text}");
        }
        assert_eq!(answered.redactions, 3);
        assert_eq!(answered.cost_usd, 0.0, "an error costs nothing");
        assert!(!format!("{gateway:?}").contains(KEY));
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let behind = Server::tcp(
        0,
        ksmith_http::Limits::DEFAULT,
        Arc::new(|_: Request, reply: Reply<'_>| {
            reply.send(307, &[("location", "http://127.0.0.1:9/v1/steal")], b"")
        }),
    )
    .unwrap();
    let memory = Memory::default();
    let url = format!("http://{}", behind.address().unwrap());
    let gateway = Gateway::start(options(&url, Wire::Chat, Limits::default(), &memory)).unwrap();
    assert_eq!(ask(&gateway, Wire::Chat, false, "go").status, 502);
    assert_eq!(memory.answered()[0].answer.status, Some(307));
}

#[test]
fn a_gateway_without_source_or_with_a_clear_address_does_not_start() {
    let memory = Memory::default();
    let mut none = options("http://127.0.0.1:9", Wire::Chat, Limits::default(), &memory);
    none.upstream = None;
    assert!(matches!(Gateway::start(none), Err(GatewayError::NoSource)));
    let clear = Options {
        upstream: Some(Upstream {
            url: "http://example.org/v1".into(),
            wire: Wire::Chat,
            key: None,
        }),
        ..options("http://127.0.0.1:9", Wire::Chat, Limits::default(), &memory)
    };
    assert!(matches!(Gateway::start(clear), Err(GatewayError::Upstream(_))));
}
