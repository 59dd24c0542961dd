//! The best of the quick pass, measured beside each other before the last scoring.

use std::time::Instant;

use ksmith_ledger::{ShortlistEntry, Shortlisted};

use crate::arena::ArenaError;
use crate::memory::BASELINE;
use crate::session::Session;
use crate::shortlist::pick;
use crate::{Event, RunError, Stage, Stop};

impl Session<'_> {
    pub(crate) fn shortlist(&mut self, stop: Stop) -> Result<(), RunError> {
        self.progress.event(&Event::Stopped(stop));
        self.stage(Stage::Shortlist, None);
        let field = self.field(BASELINE)?;
        let mut entrants = Vec::new();
        let mut entries = Vec::new();
        for (candidacy, quick) in pick(&self.memory) {
            entrants.push(self.entrant(candidacy)?);
            entries.push(ShortlistEntry {
                candidate: candidacy.proposed.candidate.clone(),
                quick,
                ratio: None,
                code: None,
            });
        }
        let began = Instant::now();
        let rounds = match self.arena.beside(&entrants, &field) {
            Ok(ranking) => {
                for (entry, ratio) in entries.iter_mut().zip(ranking.ratios) {
                    match ratio {
                        Ok(ratio) => entry.ratio = Some(ratio),
                        Err(code) => entry.code = Some(code),
                    }
                }
                ranking.rounds
            }
            Err(ArenaError::Halted) => return Err(ArenaError::Halted.into()),
            // It only orders what is scored: a run that has a champion does not end over it.
            Err(error) => {
                let text = format!("the shortlist could not be measured: {error}");
                self.note(&text, serde_json::Value::Null)?;
                0
            }
        };
        self.append(Shortlisted {
            stop: stop.to_string(),
            champion: field.champion.map(|champion| champion.id),
            rounds,
            entries,
            ms: began.elapsed().as_secs_f64() * 1e3,
        })?;
        Ok(())
    }
}
