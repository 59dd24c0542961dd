//! The budget stops the next call, whoever makes it, and is overshot by at most one call in flight.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ksmith_agents::gateway::{Call, Gateway, Limits, Meter, Options, Sink, Spent, Wire};
use ksmith_scripted::{Script, Turn, Usage};

use crate::support::{Memory, ask, gateway, options, post, price, request, scripted, upstream};

fn limits(dollars: Option<f64>, tokens: Option<u64>, calls: Option<u64>) -> Limits {
    Limits {
        dollars,
        tokens,
        calls,
    }
}

/// A call of 1000 tokens in and 100 out costs two cents.
fn cheap() -> Turn {
    Turn::text("ok").using(Usage {
        input: 1000,
        output: 100,
        ..Usage::default()
    })
}

#[test]
fn the_next_call_is_refused_once_a_limit_is_reached() {
    for wire in Wire::ALL {
        for (limits, lets, word) in [
            (limits(Some(0.05), None, None), 3, "USD"),
            (limits(None, Some(2000), None), 2, "tokens"),
            (limits(None, None, Some(1)), 1, "calls"),
            (limits(Some(0.0), None, None), 0, "USD"),
        ] {
            let behind = scripted(Script::new([cheap()]));
            let (gateway, memory) = gateway(&behind, wire, limits);
            let statuses: Vec<u16> = (0..5)
                .map(|number| ask(&gateway, wire, number % 2 == 0, "go").status)
                .collect();
            let expected: Vec<u16> = (0..5)
                .map(|number| if number < lets { 200 } else { 402 })
                .collect();
            assert_eq!(statuses, expected, "{wire} {limits:?}");
            assert_eq!(behind.seen().len(), lets, "nothing is sent beyond the budget");
            assert_eq!((memory.sent().len(), memory.answered().len()), (lets, lets));
            let tally = gateway.meter().tally("writer");
            assert_eq!((tally.answered, tally.refused), (lets as u64, 5 - lets as u64));
            let refusal = ask(&gateway, wire, true, "go");
            assert!(
                refusal.text().contains(word) && refusal.text().contains("budget_spent"),
                "{}",
                refusal.text()
            );
            let overshoot = limits.overshoot(&gateway.spent());
            assert!(overshoot < 0.02 + 1e-9, "{overshoot}");
        }
    }
}

#[test]
fn writer_and_reviewer_share_an_account_over_two_gateways() {
    let (first, second) = (scripted(Script::new([cheap()])), scripted(Script::new([cheap()])));
    let memory = Memory::default();
    let meter = Meter::new(limits(Some(0.03), None, None));
    let start = |url: &str, wire| {
        Gateway::start(Options::new(
            upstream(url, wire),
            "m",
            price(),
            Arc::clone(&meter),
            Box::new(memory.clone()),
        ))
        .unwrap()
    };
    let writer = start(&first.url(), Wire::Chat);
    let reviewer = start(&second.url(), Wire::Messages);
    assert_eq!(ask(&writer, Wire::Chat, true, "go").status, 200);
    let key = reviewer.key_for("reviewer").unwrap();
    let body = request(Wire::Messages, true, "go");
    assert_eq!(post(&reviewer.url(), &key, Wire::Messages, &body).status, 200);
    assert_eq!(ask(&writer, Wire::Chat, true, "go").status, 402);
    assert_eq!(post(&reviewer.url(), &key, Wire::Messages, &body).status, 402);
    assert_eq!(meter.spent().calls, 2);
    let roles: Vec<String> = memory
        .answered()
        .into_iter()
        .map(|answered| answered.role)
        .collect();
    assert_eq!(roles, ["writer", "reviewer"]);
}

#[test]
fn one_role_has_one_call_in_flight() {
    let turn = Turn {
        delay_ms: 100,
        ..cheap()
    };
    let behind = scripted(Script::new([turn]));
    let (gateway, memory) = gateway(&behind, Wire::Chat, limits(Some(0.03), None, None));
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| ask(&gateway, Wire::Chat, true, "go").status))
            .collect();
        let mut statuses: Vec<u16> = calls.into_iter().map(|call| call.join().unwrap()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 402, 402, 402, 402]);
    });
    let reports = memory.0.lock().unwrap();
    for pair in reports.chunks(2) {
        assert!(matches!(pair, [Call::Sent(sent), Call::Answered(answered)] if sent.id == answered.id));
    }
}

/// Fails at the n-th report.
struct Failing {
    left: usize,
    memory: Memory,
}

impl Sink for Failing {
    fn call(&mut self, call: Call) -> io::Result<()> {
        if self.left == 0 {
            return Err(io::Error::other("disk full"));
        }
        self.left -= 1;
        self.memory.call(call)
    }
}

#[test]
fn without_a_record_nothing_is_sent_and_no_answer_completed() {
    for (reports, seen) in [(0, 0), (1, 1)] {
        for wire in Wire::ALL {
            let behind = scripted(Script::new([cheap()]));
            let memory = Memory::default();
            let mut options = options(&behind.url(), wire, Limits::default(), &memory);
            options.sink = Box::new(Failing {
                left: reports,
                memory,
            });
            let gateway = Gateway::start(options).unwrap();
            let got = ask(&gateway, wire, true, "go");
            assert!(got.status == 503 || !got.is_whole, "{wire}: {got:?}");
            for end in ["[DONE]", "response.completed", "message_stop"] {
                assert!(!got.text().contains(end), "{wire}");
            }
            assert!(gateway.is_broken());
            assert_eq!(ask(&gateway, wire, false, "go").status, 503);
            assert_eq!(behind.seen().len(), seen, "{wire}");
            // What was sent is paid, recorded or not.
            assert_eq!(gateway.spent().calls, seen as u64);
        }
    }
}

#[test]
fn what_was_spent_before_counts() {
    let behind = scripted(Script::new([cheap()]));
    let memory = Memory::default();
    let before = Spent {
        calls: 7,
        dollars: 0.99,
        ..Spent::default()
    };
    let mut options = options(&behind.url(), Wire::Chat, Limits::default(), &memory);
    options.meter = Meter::going_on(limits(Some(1.0), None, None), before, 8);
    let gateway = Gateway::start(options).unwrap();
    assert_eq!(ask(&gateway, Wire::Chat, false, "go").status, 200);
    assert_eq!(memory.sent()[0].id, "m0008");
    assert_eq!(ask(&gateway, Wire::Chat, false, "go").status, 402);
    assert!((gateway.spent().dollars - 1.01).abs() < 1e-9);
}

#[test]
fn a_gateway_that_is_dropped_still_records_the_call_in_flight() {
    let turn = Turn {
        delay_ms: 300,
        ..cheap()
    };
    let behind = scripted(Script::new([turn]));
    let (gateway, memory) = gateway(&behind, Wire::Chat, Limits::default());
    let (url, key) = (gateway.url(), gateway.dummy_key().to_owned());
    let calling = std::thread::spawn(move || {
        let body = request(Wire::Chat, true, "go");
        // The connection is closed under it: whether that is an error or an empty answer does not matter here.
        let _ = std::panic::catch_unwind(|| post(&url, &key, Wire::Chat, &body));
    });
    std::thread::sleep(Duration::from_millis(100));
    let meter = Arc::clone(gateway.meter());
    drop(gateway);
    assert!(
        (meter.spent().estimated_dollars) > 0.0,
        "in flight it counts at its bound"
    );
    calling.join().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(memory.answered().len(), 1);
    assert!((meter.spent().dollars - 0.02).abs() < 1e-9);
}
