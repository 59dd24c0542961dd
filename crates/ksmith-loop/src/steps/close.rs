//! The closing record.

use std::path::Path;

use ksmith_ledger::{Certificate, Closed, Decision, History, KeyPair, Outcome, Verdict};

use crate::session::Session;
use crate::{Event, RunError, Stage, Stop};

impl Session<'_> {
    pub(crate) fn close(&mut self, stop: Stop) -> Result<(), RunError> {
        if self.memory.finals.is_empty() {
            self.progress.event(&Event::Stopped(stop));
        }
        self.stage(Stage::Close, None);
        self.append_commitments()?;
        let champion = self
            .memory
            .champion()
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
        let stop = self.memory.stop.clone().unwrap_or_else(|| stop.to_string());
        match self.memory.finals.last().filter(|last| is_refused(&last.verdict)) {
            Some(last) => format!("{stop}; the last confirmation was refused: {}", last.verdict.code),
            None => stop,
        }
    }
}

/// Whether a gate refused a champion in its last confirmation.
fn is_refused(verdict: &Verdict) -> bool {
    match verdict.verdict {
        Decision::Reject => true,
        Decision::Accept | Decision::Revise | Decision::Ambiguous | Decision::Error => false,
    }
}

/// Writes what is derived from the record: both views, the report, and for a closed run the certificate. Says what
/// could not be written.
pub(crate) fn write_files(run: &Path, signing_key: Option<&Path>) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    ksmith_ledger::views::write(run)?;
    let history = History::load(run)?;
    let last = history.champion().and_then(|champion| champion.confirmed.last());
    if let Some(last) = last.filter(|last| is_refused(&last.verdict)) {
        notes.push(format!(
            "no certificate: the last confirmation was refused ({})",
            last.verdict.code
        ));
    } else if history.closed.is_some() {
        let certificate = Certificate::of(&history)?;
        match signing_key {
            Some(path) => certificate.sign(&KeyPair::open_or_create(path)?).write(run)?,
            None => notes.push("no certificate: there is no place for a signing key (set HOME)".to_owned()),
        }
    }
    // After the certificate, which the page shows.
    let page = run.join("report.html");
    match ksmith_report::RunView::load(run) {
        Ok(view) => {
            std::fs::write(&page, ksmith_report::html::report(&view)).map_err(RunError::io("write", &page))?
        }
        Err(error) => notes.push(format!("no report: {error}")),
    }
    Ok(notes)
}
