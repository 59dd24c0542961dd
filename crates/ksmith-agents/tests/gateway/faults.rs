//! A provider that misbehaves: the client sees it, the record says it, and money is never counted too low.

use ksmith_agents::gateway::{Gateway, Limits, Wire};
use ksmith_scripted::{Fault, Script, Turn};

use crate::support::{Memory, ask, gateway, options, scripted};

#[test]
fn errors_pass_with_their_status_and_cost_nothing() {
    for wire in Wire::ALL {
        for status in [400, 429, 500, 529] {
            let behind = scripted(Script::new([Turn::fault(Fault::Status(status))]));
            let (gateway, memory) = gateway(&behind, wire, Limits::default());
            let got = ask(&gateway, wire, true, "go");
            assert_eq!(got.status, status);
            assert!(got.text().contains("as the script says"), "{}", got.text());
            let answered = &memory.answered()[0];
            assert_eq!(answered.error.as_deref(), Some("as the script says"), "{wire}");
            assert!(answered.cost_usd == 0.0 && !answered.is_estimated);
            assert_eq!(gateway.spent().calls, 1);
        }
    }
}

#[test]
fn what_may_have_been_paid_is_counted_at_its_bound() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            for fault in [
                Fault::Drop,
                Fault::DropAfter(2),
                Fault::Garbage,
                Fault::NotHttp,
                Fault::NoUsage,
                Fault::Hang(4000),
            ] {
                if fault == Fault::Hang(4000) && (wire != Wire::Chat || stream) {
                    continue;
                }
                let behind = scripted(Script::new([Turn::fault(fault)]));
                let (gateway, memory) = gateway(&behind, wire, Limits::default());
                let got = ask(&gateway, wire, stream, "go");
                let case = format!("{wire} {stream} {fault:?} {got:?}");
                let answered = &memory.answered()[0];
                assert!(answered.is_estimated, "{case}");
                assert!(
                    (answered.cost_usd - memory.sent()[0].bound_usd).abs() < 1e-12,
                    "{case}"
                );
                assert_eq!(gateway.spent().estimated_dollars, answered.cost_usd, "{case}");
                match fault {
                    Fault::NoUsage => assert!(
                        got.status == 200 && got.is_whole && answered.error.is_none(),
                        "{case}"
                    ),
                    Fault::Garbage => assert!(got.status == 200 && got.is_whole, "{case}"),
                    _ => {
                        assert!(got.status == 502 || !got.is_whole, "{case}");
                        assert!(
                            answered.error.is_some() && !answered.answer.is_success(),
                            "{case}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_was_never_sent_costs_nothing() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let memory = Memory::default();
    let url = format!("http://127.0.0.1:{port}");
    let gateway = Gateway::start(options(&url, Wire::Chat, Limits::default(), &memory)).unwrap();
    let got = ask(&gateway, Wire::Chat, true, "go");
    assert_eq!(got.status, 502);
    let answered = &memory.answered()[0];
    assert!(answered.cost_usd == 0.0 && !answered.is_estimated && answered.error.is_some());
}
