//! The scripted server as a client sees it, in each format.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use ksmith_scripted::{Action, Fault, Options, Script, ScriptedServer, Turn, Usage, Wire};
use serde_json::{Value, json};

/// Sends a request; gives the status, the body without chunks, and whether it came to its end.
fn ask(server: &ScriptedServer, path: &str, body: &Value) -> (u16, String, bool) {
    let address = server.url();
    let mut socket = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nauthorization: Bearer k\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return (0, String::from_utf8_lossy(&bytes).into_owned(), false);
    };
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let status = head.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0);
    let mut rest = &bytes[at + 4..];
    let (mut out, mut whole) = (Vec::new(), false);
    if head.contains("transfer-encoding: chunked") {
        while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            if size == 0 {
                whole = true;
                break;
            }
            out.extend_from_slice(&rest[line + 2..line + 2 + size]);
            rest = &rest[line + 4 + size..];
        }
    } else {
        let length = head.split("content-length: ").nth(1).unwrap_or("0");
        let length = length.split("\r\n").next().unwrap().parse::<usize>().unwrap();
        out.extend_from_slice(rest);
        whole = head.contains("content-length") && out.len() == length;
    }
    (status, String::from_utf8_lossy(&out).into_owned(), whole)
}

fn request(wire: Wire, stream: bool, results: usize) -> Value {
    let result = |number: usize| match wire {
        Wire::Chat => json!({"role": "tool", "tool_call_id": format!("{number}"), "content": "out"}),
        Wire::Responses => {
            json!({"type": "function_call_output", "call_id": format!("{number}"), "output": "out"})
        }
        Wire::Messages => json!({"role": "user", "content": [{"type": "tool_result", "content": "out"}]}),
    };
    let mut list = vec![json!({"role": "user", "content": "write a kernel"})];
    list.extend((0..results).map(result));
    let schema =
        json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    let (list_name, tool) = match wire {
        Wire::Chat => (
            "messages",
            json!({"type": "function", "function": {"name": "bash", "parameters": schema}}),
        ),
        Wire::Responses => (
            "input",
            json!({"type": "function", "name": "shell", "parameters": schema}),
        ),
        Wire::Messages => ("messages", json!({"name": "Bash", "input_schema": schema})),
    };
    let mut request = json!({"model": "m", "stream": stream, "tools": [tool],
        "stream_options": {"include_usage": true}});
    request[list_name] = list.into();
    request
}

fn start(script: Script) -> ScriptedServer {
    ScriptedServer::start(Options::new(script)).unwrap()
}

#[test]
fn a_session_goes_from_a_tool_call_to_its_end_in_each_format() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let server = start(Script::new([
                Turn::calls([Action::shell("echo hi")]).after_results(0),
                Turn::text("All done.").after_results(1).using(Usage {
                    input: 7,
                    cached: 5,
                    output: 3,
                    ..Usage::default()
                }),
            ]));
            let (status, first, whole) = ask(&server, wire.path(), &request(wire, stream, 0));
            assert_eq!((status, whole), (200, true));
            let joined = first.replace("\\\"", "\"");
            assert!(
                joined.contains("echo") && first.contains("call_1_0"),
                "{wire:?} {stream}: {first}"
            );
            let (_, second, _) = ask(&server, wire.path(), &request(wire, stream, 1));
            for part in match (wire, stream) {
                (Wire::Chat, true) => ["[DONE]", "\"finish_reason\":\"stop\"", "\"prompt_tokens\":12"],
                (Wire::Chat, false) => ["All done.", "\"finish_reason\":\"stop\"", "\"prompt_tokens\":12"],
                (Wire::Responses, _) => ["All done.", "\"status\":\"completed\"", "\"input_tokens\":12"],
                (Wire::Messages, true) => ["message_stop", "end_turn", "\"input_tokens\":7"],
                (Wire::Messages, false) => ["All done.", "end_turn", "\"cache_read_input_tokens\":5"],
            } {
                assert!(
                    second.contains(part),
                    "{wire:?} {stream}: {part} is missing in {second}"
                );
            }
            let turns: Vec<_> = server.seen().into_iter().map(|seen| seen.turn).collect();
            assert_eq!(turns, [Some(0), Some(1)]);
        }
    }
}

#[test]
fn what_fits_no_turn_is_an_error_and_small_talk_is_not() {
    let server = start(Script::new([Turn::text("x").if_contains("nothing like this")]));
    let (status, text, _) = ask(&server, Wire::Chat.path(), &request(Wire::Chat, true, 3));
    assert_eq!(status, 400);
    assert!(
        text.contains("no turn of the script fits: 3 tool results"),
        "{text}"
    );
    let mut title = request(Wire::Chat, false, 0);
    title["tools"] = json!([]);
    assert_eq!(ask(&server, Wire::Chat.path(), &title).0, 200);
    assert_eq!(ask(&server, "/v1/embeddings", &title).0, 404);
}

#[test]
fn faults_come_as_ordered_and_only_as_often() {
    let wire = Wire::Responses;
    for (fault, status, is_whole) in [
        (Fault::Status(429), 429, true),
        (Fault::Drop, 0, false),
        (Fault::DropAfter(2), 200, false),
        (Fault::Garbage, 200, true),
        (Fault::NotHttp, 0, false),
        (Fault::Hang(10), 0, false),
        (Fault::NoUsage, 200, true),
    ] {
        let server = start(Script::new([Turn::fault(fault).times(1), Turn::text("fine")]));
        let (found, text, whole) = ask(&server, wire.path(), &request(wire, true, 0));
        let found = if fault == Fault::NotHttp { 0 } else { found };
        assert_eq!((found, whole), (status, is_whole), "{fault:?}: {text}");
        assert!(!text.contains("output_tokens"), "{fault:?}: {text}");
        assert_eq!(ask(&server, wire.path(), &request(wire, true, 0)).0, 200);
    }
}

#[test]
fn pieces_of_any_size_make_the_same_answer_and_other_keys_stay_out() {
    let script = || Script::new([Turn::text("Grüße aus dem Skript")]);
    let (_, whole, _) = ask(
        &start(script()),
        Wire::Messages.path(),
        &request(Wire::Messages, true, 0),
    );
    let server = ScriptedServer::start(Options {
        piece_bytes: Some(1),
        key: Some("k".into()),
        ..Options::new(script())
    })
    .unwrap();
    let (_, pieces, _) = ask(&server, Wire::Messages.path(), &request(Wire::Messages, true, 0));
    assert_eq!(pieces, whole);
    let other = ScriptedServer::start(Options {
        key: Some("other".into()),
        ..Options::new(script())
    })
    .unwrap();
    assert_eq!(
        ask(&other, Wire::Messages.path(), &request(Wire::Messages, true, 0)).0,
        401
    );
}
