//! Every format, streamed and whole: passed on unchanged, counted, priced, recorded before it is complete.

use std::io::{self, Read as _};
use std::sync::mpsc;
use std::time::Duration;

use ksmith_agents::gateway::{Call, Gateway, Limits, Meter, Options, Sink, Wire};
use ksmith_scripted::{Script, Turn, Usage};

use crate::support::{KEY, Memory, agent, ask, gateway, post, price, request, scripted_in_pieces, upstream};

const USED: Usage = Usage {
    input: 100,
    cached: 40,
    cache_write: 0,
    output: 20,
    reasoning: 5,
};

#[test]
fn each_format_passes_unchanged_and_is_counted_and_recorded() {
    for wire in Wire::ALL {
        for (stream, piece) in [(false, None), (true, None), (true, Some(1)), (true, Some(7))] {
            let script = || Script::new([Turn::text("Grüße, all done.").using(USED)]);
            let behind = scripted_in_pieces(script(), piece);
            let (gateway, memory) = gateway(&behind, wire, Limits::default());
            let got = ask(&gateway, wire, stream, "hello");
            // Another server with the same script, asked without gateway, is the yardstick.
            let other = scripted_in_pieces(script(), piece);
            let mut direct = request(wire, stream, "hello");
            direct["model"] = "pinned-1".into();
            assert_eq!(
                got,
                post(&other.url(), KEY, wire, &direct),
                "{wire} {stream} {piece:?}"
            );
            assert!(got.is_whole && got.text().contains("done."), "{}", got.text());

            let (sent, answered) = (memory.sent(), memory.answered());
            assert_eq!((sent.len(), answered.len()), (1, 1));
            assert!(matches!(memory.0.lock().unwrap()[0], Call::Sent(_)));
            let (sent, answered) = (&sent[0], &answered[0]);
            assert_eq!((sent.id.as_str(), sent.role.as_str()), ("m0001", "writer"));
            assert_eq!(
                (sent.asked_model.as_str(), sent.model.as_str()),
                ("dear", "pinned-1")
            );
            assert_eq!((&answered.id, answered.key), (&sent.id, sent.key));
            assert_eq!(answered.answer.bytes, got.bytes);
            assert_eq!(answered.answered_model.as_deref(), Some("pinned-1"));
            assert!(answered.answer.is_success() && !answered.is_estimated && answered.error.is_none());
            let usage = answered.usage;
            assert_eq!(
                (usage.input, usage.cached, usage.output),
                (100, 40, 20),
                "{wire} {stream}"
            );
            assert!((answered.cost_usd - (140.0 * 10.0 + 20.0 * 100.0) / 1e6).abs() < 1e-12);
            assert!(sent.bound_usd >= answered.cost_usd);
            let spent = gateway.spent();
            assert_eq!(
                (spent.calls, spent.input_tokens, spent.output_tokens),
                (1, 140, 20)
            );
            assert!((spent.dollars - answered.cost_usd).abs() < 1e-12 && spent.estimated_dollars == 0.0);

            let seen = behind.seen();
            assert_eq!(seen.len(), 1);
            assert_eq!(seen[0].body["model"], "pinned-1");
            let headers = format!("{:?}", seen[0].headers);
            assert!(
                headers.contains(KEY) && !headers.contains(gateway.dummy_key()),
                "{headers}"
            );
        }
    }
}

/// Says when an answer is about to be recorded, and waits for leave.
struct Gate {
    reached: mpsc::Sender<()>,
    leave: mpsc::Receiver<()>,
}

impl Sink for Gate {
    fn call(&mut self, call: Call) -> io::Result<()> {
        if matches!(call, Call::Answered(_)) {
            self.reached.send(()).unwrap();
            self.leave.recv().unwrap();
        }
        Ok(())
    }
}

#[test]
fn an_answer_is_complete_at_the_client_only_after_its_record() {
    for wire in Wire::ALL {
        let behind = scripted_in_pieces(Script::new([Turn::text("first half, second half")]), None);
        let (reached, is_reached) = mpsc::channel();
        let (give_leave, leave) = mpsc::channel();
        let meter = Meter::new(Limits::default());
        let gate = Box::new(Gate { reached, leave });
        let gateway = Gateway::start(Options::new(
            upstream(&behind.url(), wire),
            "pinned-1",
            price(),
            meter,
            gate,
        ))
        .unwrap();
        let response = agent()
            .post(format!("{}/v1{}", gateway.url(), wire.endpoint()))
            .header("x-api-key", gateway.dummy_key())
            .send(request(wire, true, "hello").to_string().as_bytes())
            .unwrap();
        let mut reader = response.into_body().into_reader();
        let (piece, pieces) = mpsc::channel();
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer) {
                piece.send(buffer[..count].to_vec()).unwrap();
                if count == 0 {
                    return;
                }
            }
        });
        is_reached.recv_timeout(Duration::from_secs(5)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let before: Vec<u8> = pieces.try_iter().flatten().collect();
        let before = String::from_utf8(before).unwrap();
        assert!(
            before.contains("second half"),
            "{wire}: events pass as they come: {before}"
        );
        for end in [
            "[DONE]",
            "\"stop\"",
            "response.completed",
            "end_turn",
            "message_stop",
        ] {
            assert!(
                !before.contains(end),
                "{wire}: {end} was passed on before the record"
            );
        }
        give_leave.send(()).unwrap();
        let after: Vec<u8> = pieces.iter().flatten().collect();
        assert!(!after.is_empty(), "{wire}");
        reading.join().unwrap();
    }
}

#[test]
fn a_client_that_leaves_does_not_take_the_count_with_it() {
    let behind = scripted_in_pieces(
        Script::new([Turn::text("x".repeat(200_000)).using(USED)]),
        Some(2000),
    );
    let (gateway, memory) = gateway(&behind, Wire::Chat, Limits::default());
    let response = agent()
        .post(format!("{}/v1/chat/completions", gateway.url()))
        .header("x-api-key", gateway.dummy_key())
        .send(request(Wire::Chat, true, "hello").to_string().as_bytes())
        .unwrap();
    drop(response);
    wait_for(&memory, 1);
    let answered = &memory.answered()[0];
    assert!(!answered.is_estimated && answered.answer.is_whole);
    assert_eq!(answered.usage.output, 20);
}

fn wait_for(memory: &Memory, answers: usize) {
    for _ in 0..200 {
        if memory.answered().len() >= answers {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no answer was recorded");
}
