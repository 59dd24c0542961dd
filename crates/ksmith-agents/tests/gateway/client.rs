//! The typed client in the three formats.

use std::time::Duration;

use ksmith_agents::gateway::{Client, ClientError, Limits, Message, Stop, Tool, Wire};
use ksmith_scripted::{Action, Fault, Script, Turn};
use serde_json::json;

use crate::support::{gateway, scripted};

fn tools() -> Vec<Tool> {
    vec![Tool {
        name: "test".into(),
        description: "Runs the tests".into(),
        schema: json!({"type": "object", "properties": {"candidate": {"type": "string"}}}),
    }]
}

#[test]
fn a_conversation_with_a_tool_goes_round_in_each_format() {
    for wire in Wire::ALL {
        let behind = scripted(Script::new([
            Turn {
                text: Some("Let me look.".into()),
                ..Turn::calls([Action::call("test", json!({"candidate": "."}))]).after_results(0)
            },
            Turn::text("All green.").after_results(1),
        ]));
        let (gateway, memory) = gateway(&behind, wire, Limits::default());
        let client = Client::new(&gateway, "reviewer");
        let mut messages = vec![Message::System("Be brief.".into()), Message::User("Go.".into())];
        let answer = client.chat(&messages, &tools()).unwrap();
        assert_eq!(
            (answer.spoken.text.as_str(), answer.stop),
            ("Let me look.", Stop::Tools),
            "{wire}"
        );
        let call = answer.spoken.calls[0].clone();
        assert_eq!(
            (call.name.as_str(), call.arguments.clone()),
            ("test", json!({"candidate": "."}))
        );
        assert_eq!((answer.usage.input, answer.usage.output), (100, 20));
        messages.push(Message::Assistant(answer.spoken));
        messages.push(Message::Result {
            id: call.id,
            text: "1 passed".into(),
            is_error: false,
        });
        let answer = client.chat(&messages, &tools()).unwrap();
        assert_eq!(
            (answer.spoken.text.as_str(), answer.stop),
            ("All green.", Stop::End),
            "{wire}"
        );
        let last = behind.seen()[1].body.to_string();
        for text in ["Be brief.", "Go.", "Let me look.", "1 passed", "call_1_0"] {
            assert!(last.contains(text), "{wire}: {text} is missing in {last}");
        }
        assert!(
            memory
                .answered()
                .iter()
                .all(|answered| answered.role == "reviewer")
        );
    }
}

#[test]
fn a_busy_server_is_asked_again_and_a_failing_one_is_named() {
    let behind = scripted(Script::new([
        Turn::fault(Fault::Status(429)).times(1),
        Turn::fault(Fault::DropAfter(1)).times(1),
        Turn::text("there"),
    ]));
    let (gateway, memory) = gateway(&behind, Wire::Responses, Limits::default());
    let client = Client::new(&gateway, "writer").with_waits([Duration::ZERO; 2]);
    let messages = [Message::User("Go.".into())];
    assert_eq!(client.chat(&messages, &[]).unwrap().spoken.text, "there");
    assert_eq!(memory.answered().len(), 3);

    let behind = scripted(Script::new([Turn::fault(Fault::Status(500))]));
    let (gateway, _) = crate::support::gateway(&behind, Wire::Messages, Limits::default());
    let client = Client::new(&gateway, "writer").with_waits([Duration::ZERO; 2]);
    assert_eq!(
        client.chat(&messages, &[]),
        Err(ClientError::Api {
            status: 500,
            message: "as the script says".into()
        })
    );
    assert_eq!(behind.seen().len(), 3);
}

#[test]
fn a_spent_budget_and_an_unreadable_answer_have_names_of_their_own() {
    let messages = [Message::User("Go.".into())];
    let behind = scripted(Script::new([Turn::text("x")]));
    let none = Limits {
        calls: Some(0),
        ..Limits::default()
    };
    let (spent, _) = gateway(&behind, Wire::Chat, none);
    let client = Client::new(&spent, "writer");
    assert!(matches!(client.chat(&messages, &[]), Err(ClientError::Spent(_))));
    assert!(behind.seen().is_empty());
    for wire in Wire::ALL {
        let behind = scripted(Script::new([Turn::fault(Fault::Garbage)]));
        let (gateway, _) = gateway(&behind, wire, Limits::default());
        let client = Client::new(&gateway, "writer");
        assert!(
            matches!(client.chat(&messages, &[]), Err(ClientError::Unreadable(_))),
            "{wire}"
        );
    }
}
