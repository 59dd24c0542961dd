//! Recorded calls: replayed byte for byte without network, or served once to a run that goes on after a kill.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use super::{Answered, Body, Wire};

/// One recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its id in the run that recorded it.
    pub id: String,
    /// Who called.
    pub role: String,
    /// The format.
    pub wire: Wire,
    /// What it is found by.
    pub key: Digest,
    /// Its place in its conversation, where that is known.
    pub shape: Option<Digest>,
    /// The answer.
    pub answer: Body,
}

impl From<&Answered> for Recorded {
    fn from(answered: &Answered) -> Self {
        Self {
            id: answered.id.clone(),
            role: answered.role.clone(),
            wire: answered.wire,
            key: answered.key,
            shape: super::shape(answered.wire, &answered.request),
            answer: answered.answer.clone(),
        }
    }
}

/// How a request finds its recorded answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// By its key: the same request gets the same answer.
    Request,
    /// By its key, else by its place in its conversation ([`shape`](super::shape)): where a session is done again, what
    /// it is told and what its tools say may differ in times and figures.
    Place,
    /// By its place: the n-th call of a role gets the n-th answer. For agents whose requests hold times or random
    /// names.
    Order,
}

/// What happens to a request that has no recorded answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Otherwise {
    /// It is refused: nothing reaches the network.
    Refuse,
    /// It is sent.
    Send,
}

/// Recorded calls and how they are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    calls: VecDeque<Recorded>,
    matching: Matching,
    otherwise: Otherwise,
}

impl Replay {
    /// A whole recorded run, served again without network.
    pub fn of(calls: impl IntoIterator<Item = Recorded>, matching: Matching) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            matching,
            otherwise: Otherwise::Refuse,
        }
    }

    /// Answers of a step that a kill cut short: what is asked again at the same place is not paid for again, the rest is
    /// sent.
    pub fn of_interrupted(calls: impl IntoIterator<Item = Recorded>) -> Self {
        Self {
            calls: calls
                .into_iter()
                .filter(|call| call.answer.is_success())
                .collect(),
            matching: Matching::Place,
            otherwise: Otherwise::Send,
        }
    }

    /// What happens to a request without a recorded answer.
    pub fn otherwise(&self) -> Otherwise {
        self.otherwise
    }

    /// Takes the answer of a request, each at most once.
    pub fn take(&mut self, role: &str, wire: Wire, key: Digest, shape: Digest) -> Option<Recorded> {
        let of_role = || {
            let calls = self.calls.iter().enumerate();
            calls.filter(|(_, call)| call.role == role && call.wire == wire)
        };
        let by_key = || of_role().find(|(_, call)| call.key == key);
        let (at, _) = match self.matching {
            Matching::Order => of_role().next(),
            Matching::Request => by_key(),
            Matching::Place => by_key().or_else(|| of_role().find(|(_, call)| call.shape == Some(shape))),
        }?;
        self.calls.remove(at)
    }

    /// Calls that were not asked for yet.
    pub fn left(&self) -> usize {
        self.calls.len()
    }
}

/// One line of a tape file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    role: String,
    wire: Wire,
    key: Digest,
    #[serde(default)]
    shape: Option<Digest>,
    status: Option<u16>,
    content_type: String,
    whole: bool,
    /// The bytes, where they are UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes, where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<Vec<u8>>,
}

/// Writes recorded calls to a file, one JSON object a line.
///
/// # Errors
/// When the file cannot be written.
pub fn write_tape(path: &Path, calls: &[Recorded]) -> io::Result<()> {
    let mut text = String::new();
    for call in calls {
        let (as_text, as_bytes) = match String::from_utf8(call.answer.bytes.clone()) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(error.into_bytes())),
        };
        let line = Line {
            id: call.id.clone(),
            role: call.role.clone(),
            wire: call.wire,
            key: call.key,
            shape: call.shape,
            status: call.answer.status,
            content_type: call.answer.content_type.clone(),
            whole: call.answer.is_whole,
            text: as_text,
            bytes: as_bytes,
        };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    std::fs::write(path, text)
}

/// Reads a file that [`write_tape`] wrote.
///
/// # Errors
/// When it cannot be read, with the line.
pub fn read_tape(path: &Path) -> io::Result<Vec<Recorded>> {
    let text = std::fs::read_to_string(path)?;
    let mut calls = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line: Line = serde_json::from_str(line).map_err(|error| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {} is no recorded call: {error}", number + 1),
            )
        })?;
        calls.push(Recorded {
            id: line.id,
            role: line.role,
            wire: line.wire,
            key: line.key,
            shape: line.shape,
            answer: Body {
                status: line.status,
                content_type: line.content_type,
                bytes: line
                    .text
                    .map(String::into_bytes)
                    .or(line.bytes)
                    .unwrap_or_default(),
                is_whole: line.whole,
            },
        });
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Digest = Digest::from_bytes([0; 32]);

    fn recorded(id: &str, role: &str, key: &[u8], status: u16) -> Recorded {
        Recorded {
            id: id.into(),
            role: role.into(),
            wire: Wire::Chat,
            key: Digest::of(key),
            shape: Some(Digest::of(b"shape")),
            answer: Body {
                status: Some(status),
                content_type: "text/event-stream".into(),
                bytes: b"data: \xff\n\n".to_vec(),
                is_whole: true,
            },
        }
    }

    #[test]
    fn a_recorded_answer_is_served_once_to_its_own_role() {
        let calls = [
            recorded("m1", "writer", b"a", 200),
            recorded("m2", "reviewer", b"b", 200),
            recorded("m3", "writer", b"a", 200),
        ];
        let mut replay = Replay::of(calls.clone(), Matching::Request);
        let id = |found: Option<Recorded>| found.map(|call| call.id);
        assert_eq!(replay.take("writer", Wire::Chat, Digest::of(b"b"), NOWHERE), None);
        assert_eq!(
            replay.take("writer", Wire::Messages, Digest::of(b"a"), NOWHERE),
            None
        );
        assert_eq!(
            id(replay.take("writer", Wire::Chat, Digest::of(b"a"), NOWHERE)).as_deref(),
            Some("m1")
        );
        assert_eq!(
            id(replay.take("writer", Wire::Chat, Digest::of(b"a"), NOWHERE)).as_deref(),
            Some("m3")
        );
        assert_eq!(replay.take("writer", Wire::Chat, Digest::of(b"a"), NOWHERE), None);
        assert_eq!(replay.left(), 1);
        let mut replay = Replay::of(calls, Matching::Order);
        assert_eq!(
            id(replay.take("reviewer", Wire::Chat, Digest::of(b"?"), NOWHERE)).as_deref(),
            Some("m2")
        );
    }

    #[test]
    fn after_a_kill_only_whole_answers_are_served() {
        let mut replay = Replay::of_interrupted([
            recorded("m1", "writer", b"a", 500),
            Recorded {
                answer: Body {
                    is_whole: false,
                    ..recorded("m2", "writer", b"a", 200).answer
                },
                ..recorded("m2", "writer", b"a", 200)
            },
        ]);
        assert_eq!(replay.take("writer", Wire::Chat, Digest::of(b"a"), NOWHERE), None);
        assert_eq!(replay.otherwise(), Otherwise::Send);
    }

    #[test]
    fn after_a_kill_the_same_place_is_served_where_the_request_differs() {
        let calls = [
            recorded("m1", "writer", b"a", 200),
            recorded("m2", "writer", b"b", 200),
        ];
        let mut replay = Replay::of_interrupted(calls);
        let shape = Digest::of(b"shape");
        let id = |found: Option<Recorded>| found.map(|call| call.id);
        assert_eq!(replay.take("writer", Wire::Chat, Digest::of(b"?"), NOWHERE), None);
        assert_eq!(
            id(replay.take("writer", Wire::Chat, Digest::of(b"b"), shape)).as_deref(),
            Some("m2")
        );
        assert_eq!(
            id(replay.take("writer", Wire::Chat, Digest::of(b"?"), shape)).as_deref(),
            Some("m1")
        );
    }

    #[test]
    fn a_tape_survives_its_file_form_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape.jsonl");
        let calls = vec![
            recorded("m1", "writer", b"a", 200),
            recorded("m2", "writer", b"b", 429),
        ];
        write_tape(&path, &calls).unwrap();
        assert_eq!(read_tape(&path).unwrap(), calls);
        std::fs::write(&path, "{}\n").unwrap();
        assert!(
            read_tape(&path)
                .unwrap_err()
                .to_string()
                .starts_with("line 1 is no recorded call")
        );
    }
}
