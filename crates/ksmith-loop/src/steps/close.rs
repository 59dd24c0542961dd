//! The closing record.

use std::path::Path;

use ksmith_ledger::{Certificate, Closed, History, KeyPair, Note, Outcome};

use crate::session::Session;
use crate::{Event, Mechanism, RunError, Stage, Stop, step};

impl Session<'_> {
    pub(crate) fn close(&mut self, stop: Stop) -> Result<(), RunError> {
        if self.memory.stop.is_none() && self.memory.shortlist.is_none() {
            self.progress.event(&Event::Stopped(stop));
        }
        self.stage(Stage::Close, None);
        self.append_commitments()?;
        for text in self.remarks(stop) {
            self.progress.event(&Event::Note(&text));
            self.append(Note {
                text,
                data: serde_json::Value::Null,
            })?;
        }
        let champion = self
            .memory
            .champion()
            .map(|champion| champion.proposed.candidate.clone());
        // A champion that its last confirmation refused is none any more.
        let outcome = if champion.is_some() && self.meets_goal() {
            Outcome::GoalMet
        } else {
            Outcome::GoalNotMet
        };
        let spent = self.memory.spent;
        self.append(Closed {
            outcome,
            // After the last confirmation the stop is derived anew; what counts is why the rounds ended.
            reason: self.memory.stop.clone().unwrap_or_else(|| stop.to_string()),
            champion,
            candidates: spent.candidates,
            screened: spent.screened,
            wall_s: spent.wall_s + self.last_record.elapsed().as_secs_f64(),
            records: self.memory.records,
            head: self.ledger.head(),
            seeds: self.arena.reveal(),
            unstated: self.memory.unstated(),
            unmeasured: self.memory.unmeasured,
        })?;
        Ok(())
    }

    /// What a reader of the outcome has to know: what was not measured, and why.
    fn remarks(&self, stop: Stop) -> Vec<String> {
        let memory = &self.memory;
        let mut remarks = Vec::new();
        let last = memory.finals_of_champion().next_back().map(|last| &last.verdict);
        match (memory.champion(), last) {
            (Some(champion), None) if self.mechanisms.has(Mechanism::Final) => remarks.push(format!(
                "no time was left to confirm {} once more: its figures are those of its promotion",
                champion.proposed.candidate
            )),
            (Some(champion), Some(last)) if !last.verdict.is_statement() => remarks.push(format!(
                "the last confirmation of {} allowed no statement ({}): its figures are those of its promotion",
                champion.proposed.candidate, last.code
            )),
            _ => {}
        }
        let waits = memory
            .candidates
            .iter()
            .any(|candidate| candidate.quick_gain().is_some());
        if memory.spent.candidates == 0 && waits && stop == Stop::Wall {
            remarks.push(format!(
                "nothing was scored: one full scoring takes about {:.0} s, and {:.0} s of {:.0} s of wall time were left",
                step::scoring_s(memory),
                memory.budget().left(&memory.spent).as_secs_f64(),
                memory.budget().wall_s
            ));
        }
        remarks
    }
}

/// Writes what is derived from the record: both views, the report, and for a closed run the certificate. Says what
/// could not be written.
pub(crate) fn write_files(run: &Path, signing_key: Option<&Path>) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    ksmith_ledger::views::write(run)?;
    ksmith_ledger::kda::write(run)?;
    let history = History::load(run)?;
    if history.closed.is_some() {
        let certificate = Certificate::of(&history)?;
        match signing_key {
            Some(path) => certificate.sign(&KeyPair::open_or_create(path)?).write(run)?,
            // A replay's record is thrown away: nobody would read its certificate.
            None if history.opened.command.iter().any(|word| word == "--replay") => {}
            None => notes.push("no certificate: there is no place for a signing key (set HOME)".to_owned()),
        }
    }
    // After the certificate, which the page shows.
    let page = run.join("report.html");
    match ksmith_report::RunView::load(run) {
        Ok(view) => {
            let text = ksmith_report::html::report(&view, ksmith_report::html::Links::RunFolder);
            std::fs::write(&page, text).map_err(RunError::io("write", &page))?;
        }
        Err(error) => notes.push(format!("no report: {error}")),
    }
    Ok(notes)
}
