//! A writer that proposes what the writer of an earlier run proposed, byte for byte, in the same order and rounds.
//!
//! What is judged is judged anew: nothing of the earlier verdicts is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ksmith_ledger::{History, ObjectStore, Proposed, Role};
use ksmith_task::{Brief, Proposal, chain};

use super::{Direction, Writer, WriterError};

/// Proposes what an earlier run's writer proposed.
#[derive(Debug)]
pub struct ReplayWriter {
    run: PathBuf,
    name: String,
    proposed: Vec<Proposed>,
}

impl ReplayWriter {
    /// The record lies in `run`, or `run` is its `ledger.jsonl`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(run: &Path) -> Result<Self, WriterError> {
        let folder = match run.file_name() {
            Some(name) if name == "ledger.jsonl" => run.parent().unwrap_or(run),
            Some(_) | None => run,
        };
        let history = History::load(folder).map_err(|error| WriterError::Failed(chain(&error)))?;
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
        })
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
        let left: Vec<&Proposed> = self
            .left(brief)
            .into_iter()
            .filter(|proposed| !closed(&proposed.direction))
            .collect();
        let Some(round) = left.first().map(|proposed| proposed.round) else {
            return Ok(Vec::new());
        };
        let objects = ObjectStore::new(&self.run);
        left.into_iter()
            .take_while(|proposed| proposed.round == round)
            .take(wanted)
            .map(|proposed| {
                let folder = brief.out.join(&proposed.candidate);
                objects
                    .extract(proposed.tree, &folder)
                    .map_err(|error| WriterError::Failed(chain(&error)))?;
                Ok(Proposal {
                    folder,
                    hypothesis: proposed.hypothesis.clone(),
                    predicted_gain: proposed.predicted,
                    direction: proposed.direction.clone(),
                    parent: None,
                })
            })
            .collect()
    }
}
