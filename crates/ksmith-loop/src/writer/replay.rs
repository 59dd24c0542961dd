//! A writer that proposes what the writer of an earlier run proposed, byte for byte, in the same order and rounds, and
//! puts the transcripts of the sessions that led there into the record again.
//!
//! What is judged is judged anew: nothing of the earlier verdicts is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ksmith_ledger::{AgentCall, BlobRef, Entry, History, ObjectStore, Proposed, Role, read_records};
use ksmith_task::{Brief, Proposal};
use serde_json::json;

use super::agency::failed;
use super::{Direction, Writer, WriterError};
use crate::Recorder;
use crate::workshop::Setting;

/// Where a repeated session says which one it repeats, in its `detail`.
const REPLAYED: &str = "replayed";

/// Proposes what an earlier run's writer proposed.
#[derive(Debug)]
pub struct ReplayWriter {
    run: PathBuf,
    name: String,
    proposed: Vec<Proposed>,
    /// Sessions by their numbers in the record, each with the round that it led to, where it led to one.
    sessions: BTreeMap<u64, (Option<u32>, AgentCall)>,
    recorder: Recorder,
}

impl ReplayWriter {
    /// The record lies in `run`, or `run` is its `ledger.jsonl`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(run: &Path, setting: &Setting<'_>) -> Result<Self, WriterError> {
        let folder = match run.file_name() {
            Some(name) if name == "ledger.jsonl" => run.parent().unwrap_or(run),
            Some(_) | None => run,
        };
        let history = History::load(folder).map_err(|error| failed(&error))?;
        let mut sessions = sessions(folder)?;
        // A step that was cut short is begun anew; what it put into the record stands there.
        for done in replayed(setting.run)? {
            sessions.remove(&done);
        }
        let proposed = history
            .candidates
            .into_iter()
            .map(|candidate| candidate.proposed)
            .filter(|proposed| proposed.role == Role::Candidate)
            .collect();
        Ok(Self {
            run: folder.to_owned(),
            name: history.opened.run,
            proposed,
            sessions,
            recorder: setting.recorder.clone(),
        })
    }

    /// Puts sessions up to those that led to `round`, or all that are left, into the record, byte for byte.
    fn repeat_sessions(&mut self, round: Option<u32>) -> Result<(), WriterError> {
        let objects = ObjectStore::new(&self.run);
        let copy = |blob: BlobRef| -> Result<BlobRef, WriterError> {
            let bytes = objects.get(blob.blob).map_err(|error| failed(&error))?;
            self.recorder.put(&bytes).map_err(|error| failed(&error))
        };
        let is_due = |led_to: Option<u32>| match round {
            Some(round) => led_to.is_some_and(|led_to| led_to <= round),
            None => true,
        };
        for (record, (_, call)) in self.sessions.extract_if(.., |_, (led_to, _)| is_due(*led_to)) {
            let detail = json!({
                "outcome": call.detail["outcome"],
                "code": call.detail["code"],
                REPLAYED: { "run": self.name, "record": record },
            });
            let again = AgentCall {
                prompt: copy(call.prompt)?,
                answer: call.answer.map(copy).transpose()?,
                errors: call.errors.map(copy).transpose()?,
                detail,
                // Nobody worked.
                ms: 0.0,
                ..call
            };
            self.recorder.append(again).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// What of the record has not been proposed in this run. Equal proposals count as often as they stand there.
    fn left(&self, brief: &Brief) -> Vec<&Proposed> {
        let mut done: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        for past in &brief.history {
            *done.entry((&past.direction, &past.hypothesis)).or_default() += 1;
        }
        self.proposed
            .iter()
            .filter(|proposed| {
                let count = done.get_mut(&(proposed.direction.as_str(), proposed.hypothesis.as_str()));
                match count {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        false
                    }
                    Some(_) | None => true,
                }
            })
            .collect()
    }
}

/// The sessions of a run, by their numbers in its record.
fn sessions(run: &Path) -> Result<BTreeMap<u64, (Option<u32>, AgentCall)>, WriterError> {
    let mut sessions: BTreeMap<u64, (Option<u32>, AgentCall)> = BTreeMap::new();
    for (record, entry) in entries(run)? {
        match entry {
            Entry::AgentCall(call) => {
                sessions.insert(record, (None, call));
            }
            Entry::Proposed(proposed) if proposed.role == Role::Candidate => {
                for (led_to, _) in sessions.values_mut() {
                    led_to.get_or_insert(proposed.round);
                }
            }
            _ => {}
        }
    }
    Ok(sessions)
}

/// Numbers of the earlier run's sessions that stand in a record already.
fn replayed(run: &Path) -> Result<BTreeSet<u64>, WriterError> {
    if !run.exists() {
        return Ok(BTreeSet::new());
    }
    let entries = entries(run)?.into_iter();
    let numbers = entries.filter_map(|(_, entry)| match entry {
        Entry::AgentCall(call) => call.detail[REPLAYED]["record"].as_u64(),
        _ => None,
    });
    Ok(numbers.collect())
}

fn entries(run: &Path) -> Result<Vec<(u64, Entry)>, WriterError> {
    let records = read_records(run).map_err(|error| failed(&error))?;
    let entries = records
        .iter()
        .map(|record| record.entry().map(|entry| (record.seq, entry)));
    entries
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed(&error))
}

impl Writer for ReplayWriter {
    fn name(&self) -> String {
        format!("replay:{}", self.name)
    }

    fn directions(&mut self, _: &Brief) -> Result<Vec<Direction>, WriterError> {
        let mut directions: Vec<Direction> = Vec::new();
        for proposed in &self.proposed {
            if !directions.iter().any(|known| known.name == proposed.direction) {
                directions.push(Direction {
                    name: proposed.direction.clone(),
                    idea: format!("as in run {}", self.name),
                    value: proposed.predicted.unwrap_or(1.0),
                    risk: "another machine, another judge's draws".into(),
                });
            }
        }
        Ok(directions)
    }

    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        let closed = |direction: &str| {
            brief
                .notes
                .iter()
                .any(|note| note.contains(&format!("`{direction}` is closed")))
        };
        let left: Vec<Proposed> = self
            .left(brief)
            .into_iter()
            .filter(|proposed| !closed(&proposed.direction))
            .cloned()
            .collect();
        let round = left.first().map(|proposed| proposed.round);
        self.repeat_sessions(round)?;
        let objects = ObjectStore::new(&self.run);
        left.into_iter()
            .take_while(|proposed| Some(proposed.round) == round)
            .take(wanted)
            .map(|proposed| {
                let folder = brief.out.join(&proposed.candidate);
                objects
                    .extract(proposed.tree, &folder)
                    .map_err(|error| failed(&error))?;
                Ok(Proposal {
                    folder,
                    hypothesis: proposed.hypothesis,
                    predicted_gain: proposed.predicted,
                    direction: proposed.direction,
                    parent: None,
                })
            })
            .collect()
    }
}
