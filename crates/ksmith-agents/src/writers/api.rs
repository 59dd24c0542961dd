//! A plain model as a writer: our own small loop of turns and tools, over the gateway's client.
//!
//! The model has no shell. It reads and writes files of its desk through us and asks the same probes as any agent, so
//! nothing of it runs outside the candidates' own boxes, and an attempt to write elsewhere is seen as it happens.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Answer, Approver, Desk, ModelFacts, Request, Said, unified};
use crate::gateway::{Client, ClientError, Message, Stop, Tool, ToolUse};
use crate::tools::{Called, Envelope, Log, Tickets, Verb};

/// Most bytes of a file that the model is shown at once.
const SHOWN: usize = 48 << 10;
/// Longest file that the model may write, in bytes.
const WRITTEN: usize = 512 << 10;
/// How long a probe may take before the model gets a ticket.
const WAIT: Duration = Duration::from_secs(300);
/// What the model is told first.
const SYSTEM: &str = "You write fast, correct kernels. Work only through the tools. Nothing that you say is evidence: \
                      when you stop, the files in candidate/ are read and judged.";

/// One conversation.
pub struct Conversation<'a> {
    /// The model.
    pub client: &'a Client,
    /// The desk.
    pub desk: &'a Desk,
    /// The probes.
    pub tickets: &'a Tickets,
    /// Writes tool calls down.
    pub log: &'a dyn Log,
    /// Answers requests that leave the policy.
    pub approver: &'a dyn Approver,
    /// Turns of the model.
    pub turns: u32,
    /// Wall time.
    pub wall: Duration,
}

/// What was seen of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Talk {
    /// What was said, as JSON lines.
    pub transcript: Vec<u8>,
    /// Calls of the model.
    pub model: ModelFacts,
    /// Limits that were met.
    pub said: Said,
    /// Whether its time was over.
    pub timed_out: bool,
    /// Given files that it tried to change; it could not.
    pub attempts: Vec<String>,
    /// What went wrong with the model, if something did.
    pub error: Option<String>,
    /// Turns taken.
    pub turns: u32,
}

/// What a tool gave.
struct Given {
    text: String,
    is_error: bool,
}

impl Given {
    fn fine(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
        }
    }

    fn wrong(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: true,
        }
    }
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}

/// The tools on offer: three for files, eight probes.
fn tools() -> Vec<Tool> {
    let path = json!({ "type": "string", "description": "a path in the working folder" });
    let mut tools = vec![
        tool("list", "List the files of the working folder.", json!({}), &[]),
        tool("read", "Read a file.", json!({ "path": path }), &["path"]),
        tool(
            "write",
            "Write a whole file: below candidate/, or proposal.toml. Other places are refused.",
            json!({ "path": path, "text": { "type": "string" } }),
            &["path", "text"],
        ),
    ];
    tools.extend(Verb::ALL.iter().map(|verb| {
        let mut properties = json!({});
        if *verb == Verb::Know {
            properties["query"] = json!({ "type": "string" });
        }
        if verb.is_long() {
            properties["ticket"] =
                json!({ "type": "string", "description": "the ticket of a pending answer" });
        }
        tool(verb.name(), verb.help(), properties, &[])
    }));
    tools
}

impl Conversation<'_> {
    /// Talks until the model stops, its turns or its time are over, its budget is spent, or `keep_on` says no.
    pub fn talk(&self, prompt: &str, keep_on: &dyn Fn() -> bool) -> Talk {
        let began = Instant::now();
        let tools = tools();
        let mut talk = Talk::default();
        let mut messages = vec![
            Message::System(SYSTEM.to_owned()),
            Message::User(prompt.to_owned()),
        ];
        note(&mut talk, &json!({ "user": prompt }));
        loop {
            if talk.turns >= self.turns {
                talk.said.turn_limit = true;
                break;
            }
            if began.elapsed() >= self.wall || !keep_on() {
                talk.timed_out = true;
                break;
            }
            talk.turns += 1;
            let answer = match self.client.chat(&messages, &tools) {
                Ok(answer) => answer,
                Err(error) => {
                    match &error {
                        ClientError::Spent(_) => talk.model.refused += 1,
                        _ => talk.model.failed += 1,
                    }
                    note(&mut talk, &json!({ "error": error.to_string() }));
                    talk.error = Some(error.to_string());
                    break;
                }
            };
            talk.model.answered += 1;
            let calls = answer.spoken.calls.clone();
            let called: Vec<Value> = calls
                .iter()
                .map(|call| json!({ "name": call.name, "arguments": call.arguments }))
                .collect();
            note(
                &mut talk,
                &json!({ "assistant": answer.spoken.text, "calls": called }),
            );
            talk.said.keep(&answer.spoken.text);
            messages.push(Message::Assistant(answer.spoken));
            if calls.is_empty() {
                if answer.stop == Stop::Length {
                    messages.push(Message::User(
                        "You were cut off. Go on with a tool call.".to_owned(),
                    ));
                    continue;
                }
                break;
            }
            for call in calls {
                let given = self.answer(&call, &mut talk);
                note(
                    &mut talk,
                    &json!({ "tool": call.name, "error": given.is_error, "text": given.text }),
                );
                messages.push(Message::Result {
                    id: call.id,
                    text: given.text,
                    is_error: given.is_error,
                });
            }
        }
        talk
    }

    fn answer(&self, call: &ToolUse, talk: &mut Talk) -> Given {
        let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
        match (call.name.as_str(), text("path")) {
            ("list", _) => Given::fine(self.desk.list().join("\n")),
            ("read", Some(path)) => match self.desk.read(path) {
                Some(bytes) => Given::fine(shown(&bytes)),
                None => Given::wrong(format!("there is no file `{path}`")),
            },
            ("write", Some(path)) => match text("text") {
                Some(text) => self.write(path, text, talk),
                None => Given::wrong("`text` is missing"),
            },
            ("read" | "write", None) => Given::wrong("`path` is missing"),
            (name, _) => self.probe(name, &call.arguments),
        }
    }

    fn write(&self, path: &str, text: &str, talk: &mut Talk) -> Given {
        if text.len() > WRITTEN {
            return Given::wrong(format!("a file may hold {WRITTEN} bytes at most"));
        }
        if self.desk.is_given(path) {
            talk.attempts.push(path.to_owned());
            return Given::wrong(format!(
                "`{path}` was given and cannot be changed; the attempt is on record"
            ));
        }
        if !Desk::is_own(path) {
            let before = self.desk.read(path).unwrap_or_default();
            let request = Request {
                what: format!("the model wants to write `{path}`, outside its candidate"),
                diff: unified(path, &before, text.as_bytes()),
            };
            if self.approver.answer(&request) == Answer::Denied {
                return Given::wrong(format!("`{path}` is outside candidate/ and was not granted"));
            }
        }
        match self.desk.write(path, text.as_bytes()) {
            Ok(()) => Given::fine(format!("{} bytes written", text.len())),
            Err(error) => Given::wrong(format!("`{path}` cannot be written: {error}")),
        }
    }

    fn probe(&self, name: &str, arguments: &Value) -> Given {
        let envelope = match name.parse::<Verb>() {
            Ok(verb) => self.tickets.ask(verb, arguments, WAIT),
            Err(why) => Envelope::refused(Verb::Task, "tool/no-such-verb", why),
        };
        let called = Called {
            tool: name.chars().take(40).collect(),
            arguments: arguments.clone(),
            answer: envelope,
        };
        if let Err(error) = self.log.write(&called) {
            return Given::wrong(format!("the call could not be written down: {error}"));
        }
        let text = serde_json::to_string(&called.answer).unwrap_or_default();
        Given {
            text,
            is_error: !called.allowed(),
        }
    }
}

fn note(talk: &mut Talk, line: &Value) {
    talk.transcript.extend_from_slice(line.to_string().as_bytes());
    talk.transcript.push(b'\n');
}

fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN)];
    let mut text = String::from_utf8_lossy(cut).into_owned();
    if cut.len() < bytes.len() {
        text.push_str(&format!("\n[cut: {} of {} bytes]", cut.len(), bytes.len()));
    }
    text
}
