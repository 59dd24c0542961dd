//! A request for a review at the crown, as the tests of both kinds of reviewers send it.

use ksmith_agents::review::{Occasion, Request, Subject};
use ksmith_task::Digest;
use serde_json::json;

pub(crate) fn request(prose: &str) -> Request {
    Request {
        occasion: Occasion::Crown,
        subject: Subject {
            task: Digest::of(b"task"),
            source: Digest::of(b"source"),
            judge: Digest::of(b"judge"),
        },
        candidate: Some("c0007".into()),
        contract: "name = \"softmax\"\n".into(),
        change: "+++ kernel.c\n+ y[0] = 1;\n".into(),
        source: vec![("kernel.c".into(), "void f(float *y) { y[0] = 1; }\n".into())],
        evidence: json!({ "verdict": "accept" }),
        profile: String::new(),
        course: String::new(),
        known: Vec::new(),
        round: 1,
        prose: prose.into(),
    }
}
