//! The closing record.

use std::path::Path;

use ksmith_ledger::{Certificate, Closed, Decision, History, KeyPair, Outcome};

use crate::session::Session;
use crate::{Event, RunError, Stage, Stop};

impl Session<'_> {
    pub(crate) fn close(&mut self, stop: Stop) -> Result<(), RunError> {
        if self.memory.finals.is_empty() {
            self.progress.event(&Event::Stopped(stop));
        }
        self.stage(Stage::Close, None);
        self.append_commitments()?;
        // A champion whose last confirmation was refused by a gate is none: the judge's last word counts.
        let refused = self
            .memory
            .finals
            .last()
            .is_some_and(|last| match last.verdict.verdict {
                Decision::Reject => true,
                Decision::Accept | Decision::Revise | Decision::Ambiguous | Decision::Error => false,
            });
        let champion = self
            .memory
            .champion()
            .filter(|_| !refused)
            .map(|champion| champion.proposed.candidate.clone());
        let confirmed = match self.memory.finals.last().map(|last| last.verdict.verdict) {
            Some(Decision::Accept) => true,
            Some(Decision::Revise | Decision::Reject | Decision::Ambiguous | Decision::Error) => false,
            // Switched off: the confirmation by which it was promoted stands.
            None => champion.is_some(),
        };
        let outcome = if confirmed && self.meets_goal() {
            Outcome::GoalMet
        } else {
            Outcome::GoalNotMet
        };
        let spent = self.memory.spent;
        self.append(Closed {
            outcome,
            reason: self.stop_reason(stop),
            champion,
            candidates: spent.candidates,
            screened: spent.screened,
            wall_s: spent.wall_s + self.last_record.elapsed().as_secs_f64(),
            records: self.memory.records,
            head: self.ledger.head(),
            seeds: self.arena.reveal(),
        })?;
        Ok(())
    }

    /// After the last confirmation the stop is derived anew from the budget; what counts is why the rounds ended.
    fn stop_reason(&self, stop: Stop) -> String {
        self.memory.stop.clone().unwrap_or_else(|| stop.to_string())
    }
}

/// Writes what is derived from the record: both views, the report, and for a closed run the certificate. Says what
/// could not be written.
pub(crate) fn write_files(run: &Path, signing_key: Option<&Path>) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    ksmith_ledger::views::write(run)?;
    let history = History::load(run)?;
    if history.closed.is_some() {
        let certificate = Certificate::of(&history)?;
        match signing_key {
            Some(path) => certificate.sign(&KeyPair::open_or_create(path)?).write(run)?,
            None => notes.push("no certificate: there is no place for a signing key (set HOME)".to_owned()),
        }
    }
    Ok(notes)
}
