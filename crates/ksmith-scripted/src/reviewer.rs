//! What a reviewer says that objects to nothing.

use crate::Turn;

const BOUND: [&str; 4] = ["task", "source", "judge", "nonce"];
const HEAD: &str = r#"{"task":"{task}","source":"{source}","judge":"{judge}","nonce":"{nonce}","#;

impl Turn {
    /// A reviewer's answer, whose binding is copied from the request; `rest` is the JSON after it, from the first field
    /// to the closing brace. It answers requests whose schema asks for that first field after the binding.
    pub fn bound(rest: &str) -> Self {
        let first = rest.split(':').next().unwrap_or_default();
        Self::text(format!("{HEAD}{rest}"))
            .copying(BOUND)
            .if_contains(format!("\"nonce\",{first}"))
    }

    /// A reviewer that lets candidates pass, agrees with plans, and finds three ambiguities in contracts.
    pub fn agreeing() -> [Self; 3] {
        let ambiguity = |key: &str| {
            format!(
                r#"{{"key":"{key}","class":"goal","place":"performance","question":"Which?","readings":["a","b"],"suggestion":"a"}}"#
            )
        };
        let three = ["first", "second", "third"].map(ambiguity).join(",");
        [
            Self::bound(r#""verdict":"pass","findings":[],"next":null}"#),
            Self::bound(r#""required":[],"optional":[],"decisions":[]}"#),
            Self::bound(&format!(r#""ambiguities":[{three}],"checked":[]}}"#)),
        ]
    }
}
