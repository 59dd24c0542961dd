//! Reads an answer as it passes: what it used, which model spoke, whether it came to its end.

use serde_json::{Map, Value};

use super::{Event, Usage, Wire};

/// What to do with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It may pass at once.
    Pass,
    /// It completes the answer, as far as the client is concerned: it, and all that follow, wait for the record.
    Ends,
}

/// Reads one answer, event by event or whole.
#[derive(Debug, Clone)]
pub struct AnswerReader {
    wire: Wire,
    usage: Map<String, Value>,
    model: Option<String>,
    error: Option<String>,
    is_ending: bool,
    is_ended: bool,
    unreadable: u64,
}

impl AnswerReader {
    /// A reader for one answer.
    pub fn new(wire: Wire) -> Self {
        Self {
            wire,
            usage: Map::new(),
            model: None,
            error: None,
            is_ending: false,
            is_ended: false,
            unreadable: 0,
        }
    }

    /// Reads one streamed event.
    pub fn event(&mut self, event: &Event) -> Flow {
        if event.data.is_empty() {
            return self.flow();
        }
        if self.wire == Wire::Chat && event.data.trim() == "[DONE]" {
            (self.is_ending, self.is_ended) = (true, true);
            return Flow::Ends;
        }
        match serde_json::from_str::<Value>(&event.data) {
            Ok(data) => self.data(&data),
            Err(_) => self.unreadable += 1,
        }
        self.flow()
    }

    fn flow(&self) -> Flow {
        if self.is_ending { Flow::Ends } else { Flow::Pass }
    }

    fn data(&mut self, data: &Value) {
        if let Some(error) = data.get("error").filter(|error| !error.is_null()) {
            self.error = Some(message(error));
            self.is_ending = true;
        }
        match self.wire {
            Wire::Chat => {
                self.note(&data["model"], &data["usage"]);
                // Some servers send usage with every choice list empty, some with the last choice.
                self.is_ending |= data["choices"]
                    .as_array()
                    .is_some_and(|choices| choices.iter().any(|choice| choice["finish_reason"].is_string()));
            }
            Wire::Responses => {
                let response = &data["response"];
                self.note(&response["model"], &response["usage"]);
                match data["type"].as_str() {
                    Some("response.completed" | "response.incomplete") => self.end(),
                    Some("response.failed") => {
                        self.error = Some(message(&response["error"]));
                        self.end();
                    }
                    Some("error") => {
                        self.error = Some(message(data));
                        self.end();
                    }
                    _ => {}
                }
            }
            Wire::Messages => match data["type"].as_str() {
                Some("message_start") => self.note(&data["message"]["model"], &data["message"]["usage"]),
                Some("message_delta") => {
                    self.note(&Value::Null, &data["usage"]);
                    self.is_ending |= data["delta"]["stop_reason"].is_string();
                }
                Some("message_stop") => self.end(),
                _ => {}
            },
        }
    }

    fn end(&mut self) {
        (self.is_ending, self.is_ended) = (true, true);
    }

    /// Later counts replace earlier ones field by field: messages count their output up.
    fn note(&mut self, model: &Value, usage: &Value) {
        if let Some(model) = model.as_str() {
            self.model = Some(model.to_owned());
        }
        for (name, count) in usage.as_object().into_iter().flatten() {
            if !count.is_null() {
                self.usage.insert(name.clone(), count.clone());
            }
        }
    }

    /// Reads an answer that came whole.
    pub fn whole(&mut self, body: &[u8]) {
        match serde_json::from_slice::<Value>(body) {
            Ok(body) if body.is_object() => {
                self.note(&body["model"], &body["usage"]);
                self.end();
                if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
                    self.error = Some(message(error));
                }
            }
            Ok(_) | Err(_) => self.unreadable += 1,
        }
    }

    /// What it used; `None` where it did not say.
    pub fn usage(&self) -> Option<Usage> {
        Usage::read(self.wire, &self.raw_usage())
    }

    /// What it used, in the provider's own words; null where it did not say.
    pub fn raw_usage(&self) -> Value {
        if self.usage.is_empty() {
            Value::Null
        } else {
            Value::Object(self.usage.clone())
        }
    }

    /// The model that the answer names.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The error that the answer carries, in the provider's words.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Whether the format's own end was seen.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Parts that could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }
}

/// The words of an error object, of at most 500 characters.
fn message(error: &Value) -> String {
    let text = error["message"].as_str().or_else(|| error.as_str());
    let text = text.map_or_else(|| error.to_string(), str::to_owned);
    text.chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Splitter;
    use super::*;

    const CHAT: &str = concat!(
        "data: {\"model\":\"m-1\",\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}\n\n",
        "data: [DONE]\n\n",
    );
    const RESPONSES: &str = concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"m-1\",\"usage\":null}}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n",
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"m-1\",\
         \"usage\":{\"input_tokens\":10,\"output_tokens\":3}}}\n\n",
    );
    const MESSAGES: &str = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-1\",\
         \"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
         \"usage\":{\"output_tokens\":3}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );

    fn read(wire: Wire, bytes: &[u8], piece: usize) -> (AnswerReader, Vec<Flow>) {
        let mut splitter = Splitter::default();
        let mut reader = AnswerReader::new(wire);
        let mut flows = Vec::new();
        for piece in bytes.chunks(piece) {
            flows.extend(splitter.feed(piece).iter().map(|event| reader.event(event)));
        }
        (reader, flows)
    }

    #[test]
    fn each_format_ends_with_its_counts() {
        use Flow::{Ends, Pass};
        for (wire, text, flows) in [
            (Wire::Chat, CHAT, vec![Pass, Ends, Ends, Ends]),
            (Wire::Responses, RESPONSES, vec![Pass, Pass, Ends]),
            (Wire::Messages, MESSAGES, vec![Pass, Pass, Ends, Ends]),
        ] {
            let (reader, found) = read(wire, text.as_bytes(), 1000);
            assert_eq!(found, flows, "{wire}");
            let usage = reader.usage().unwrap();
            assert_eq!((usage.input, usage.output), (10, 3), "{wire}");
            assert_eq!(reader.model(), Some("m-1"), "{wire}");
            assert!(reader.is_ended() && reader.error().is_none(), "{wire}");
        }
    }

    #[test]
    fn errors_inside_a_stream_are_seen() {
        let (reader, _) = read(
            Wire::Messages,
            b"data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
            7,
        );
        assert_eq!(reader.error(), Some("busy"));
        let (reader, _) = read(
            Wire::Responses,
            b"data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"x\",\"message\":\"no\"}}}\n\n",
            7,
        );
        assert_eq!(reader.error(), Some("no"));
    }

    proptest! {
        #[test]
        fn a_truncated_stream_never_counts_as_ended(cut in 0usize..1000, piece in 1usize..50) {
            for (wire, text) in [(Wire::Chat, CHAT), (Wire::Responses, RESPONSES), (Wire::Messages, MESSAGES)] {
                let cut = cut % (text.len() - 1);
                let (reader, _) = read(wire, &text.as_bytes()[..cut], piece);
                prop_assert!(!reader.is_ended());
            }
        }

        #[test]
        fn garbage_is_counted_and_never_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            json in "(data: [\\[\\]{}\":a-z0-9, ]{0,60}\n\n){0,8}",
        ) {
            for wire in Wire::ALL {
                let _ = read(wire, &bytes, 13);
                let (reader, _) = read(wire, json.as_bytes(), 13);
                prop_assert!(reader.usage().is_none() || reader.raw_usage().is_object());
                AnswerReader::new(wire).whole(&bytes);
            }
        }
    }
}
