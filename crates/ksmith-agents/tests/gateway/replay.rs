//! Recorded runs: the same bytes without network, and nothing paid twice after a kill.

use std::sync::{Arc, Mutex};

use ksmith_agents::gateway::{
    Gateway, Limits, Matching, Meter, Options, Recorded, Replay, Wire, read_tape, write_tape,
};
use ksmith_scripted::{Fault, Script, Turn};

use crate::support::{Got, Memory, ask, gateway, options, scripted};

fn script() -> Script {
    Script::new([
        Turn::text("first answer").if_contains("one"),
        Turn::fault(Fault::Status(429)).if_contains("two").times(1),
        Turn::text("second answer").if_contains("two"),
        Turn::fault(Fault::DropAfter(3)).if_contains("three").times(1),
        Turn::text("third answer").if_contains("three"),
    ])
}

const PROMPTS: [&str; 5] = ["one", "two", "two", "three", "three"];

fn session(gateway: &Gateway, wire: Wire, stream: bool) -> Vec<Got> {
    PROMPTS
        .iter()
        .map(|prompt| ask(gateway, wire, stream, prompt))
        .collect()
}

#[test]
fn a_replayed_run_gives_the_same_bytes_without_network() {
    let folder = tempfile::tempdir().unwrap();
    for wire in Wire::ALL {
        for matching in [Matching::Request, Matching::Order] {
            let behind = scripted(script());
            let (gateway, memory) = gateway(&behind, wire, Limits::default());
            let recorded = session(&gateway, wire, true);
            assert_eq!(recorded[1].status, 429);
            assert!(!recorded[3].is_whole);
            let path = folder.path().join("tape.jsonl");
            let calls: Vec<Recorded> = memory.answered().iter().map(Recorded::from).collect();
            write_tape(&path, &calls).unwrap();
            drop((gateway, behind));

            let replay = Replay::of(read_tape(&path).unwrap(), matching);
            let again = Memory::default();
            let meter = Meter::new(Limits {
                dollars: Some(0.0),
                ..Limits::default()
            });
            let gateway = Gateway::start(Options::replaying(
                wire,
                "pinned-1",
                replay,
                meter,
                Box::new(again.clone()),
            ))
            .unwrap();
            assert_eq!(session(&gateway, wire, true), recorded, "{wire}");
            assert_eq!((gateway.replay_left(), gateway.spent().calls), (0, 0));
            let answers = |memory: &Memory| -> Vec<_> {
                memory
                    .answered()
                    .into_iter()
                    .map(|answered| answered.answer)
                    .collect()
            };
            assert_eq!(answers(&again), answers(&memory));
            assert_eq!(again.answered()[4].served_from.as_deref(), Some("m0005"));
            let refused = ask(&gateway, wire, true, "one");
            assert_eq!(refused.status, 409, "{}", refused.text());
        }
    }
}

#[test]
fn a_replay_refuses_another_request() {
    let behind = scripted(script());
    let (recording, memory) = gateway(&behind, Wire::Chat, Limits::default());
    ask(&recording, Wire::Chat, false, "one");
    let replay = Replay::of(memory.answered().iter().map(Recorded::from), Matching::Request);
    let meter = Meter::new(Limits::default());
    let options = Options::replaying(Wire::Chat, "pinned-1", replay, meter, Box::new(Memory::default()));
    let gateway = Gateway::start(options).unwrap();
    assert_eq!(ask(&gateway, Wire::Chat, false, "one, but different").status, 409);
    assert_eq!(ask(&gateway, Wire::Chat, false, "one").status, 200);
}

#[test]
fn after_a_kill_a_paid_answer_is_served_and_only_the_rest_is_paid() {
    let behind = scripted(script());
    let (first, memory) = gateway(&behind, Wire::Messages, Limits::default());
    let before = [
        ask(&first, Wire::Messages, true, "one"),
        ask(&first, Wire::Messages, true, "two"),
    ];
    assert_eq!(before[1].status, 429);
    let spent = first.spent();
    drop(first);
    assert_eq!(behind.seen().len(), 2);

    let again = Memory::default();
    let mut options = options(&behind.url(), Wire::Messages, Limits::default(), &again);
    options.meter = Meter::going_on(Limits::default(), spent, 3);
    let calls = memory.answered();
    let replay = Replay::of_interrupted(calls.iter().map(Recorded::from));
    options.replay = Some(Arc::new(Mutex::new(replay)));
    let second = Gateway::start(options).unwrap();
    assert_eq!(
        ask(&second, Wire::Messages, true, "one"),
        before[0],
        "served from the record"
    );
    assert_eq!(behind.seen().len(), 2, "the paid call is not repeated");
    assert_eq!(second.spent(), spent);
    // A failed call was not paid for and is asked again; so is what was asked once and comes twice.
    assert_eq!(ask(&second, Wire::Messages, true, "two").status, 200);
    assert_eq!(ask(&second, Wire::Messages, true, "one").status, 200);
    assert_eq!(behind.seen().len(), 4);
    assert_eq!(second.spent().calls, spent.calls + 2);
    let ids: Vec<_> = again
        .answered()
        .into_iter()
        .map(|answered| (answered.id, answered.served_from))
        .collect();
    assert_eq!(
        ids,
        [
            ("m0003".to_owned(), Some("m0001".to_owned())),
            ("m0004".to_owned(), None),
            ("m0005".to_owned(), None)
        ]
    );
}
