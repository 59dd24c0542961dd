//! Asks the writer and puts what it leaves into the object store.

use std::path::{Path, PathBuf};

use ksmith_ledger::{Decision, Proposed, Role};
use ksmith_task::{Brief, BudgetLeft, Candidate, Outcome, Proposal};

use crate::memory::Candidacy;
use crate::session::Session;
use crate::step::closed_directions;
use crate::writer::{Absent, WriterError};
use crate::{Mechanism, RunError, Stage};

/// Most candidates that one round asks for: enough that the one full scoring of a round (about 7 s on a quiet machine)
/// leaves time to screen 60 a minute, few enough that what the first teach still helps the last.
const ROUND: usize = 12;

impl Session<'_> {
    pub(crate) fn propose(&mut self) -> Result<(), RunError> {
        self.stage(Stage::Propose, None);
        let round = self.memory.last_round() + 1;
        let closed = if self.mechanisms.has(Mechanism::Directions) {
            closed_directions(&self.memory)
        } else {
            Vec::new()
        };
        let workspace = self.workspace(round)?;
        let brief = self.brief(&closed, workspace.clone())?;
        let wanted = if self.mechanisms.has(Mechanism::Screen) {
            ROUND
        } else {
            1
        };
        let mut proposals = match self.ask_writer(&brief, wanted)? {
            Ok(proposals) => proposals,
            Err(error) => {
                self.note(
                    &format!("{error}; nothing more is asked of it"),
                    serde_json::Value::Null,
                )?;
                Vec::new()
            }
        };
        self.judgement.statement = self.writer.statement();
        let offered = proposals.len();
        proposals.retain(|proposal| !closed.contains(&proposal.direction));
        proposals.truncate(wanted);
        if proposals.is_empty() && self.interrupt.is_requested() {
            return remove(&workspace);
        }
        if proposals.is_empty() {
            let text = match offered {
                0 => "the writer has nothing left to propose".to_owned(),
                _ => format!(
                    "the writer proposes closed directions only: {}",
                    closed.join(", ")
                ),
            };
            self.note(&text, serde_json::Value::Null)?;
            self.writer_is_exhausted = true;
            return remove(&workspace);
        }
        for proposal in &proposals {
            self.record_proposal(proposal, round, Role::Candidate)?;
        }
        remove(&workspace)?;
        self.build_ahead(round)
    }

    /// The writer works on a thread of its own, so that whatever it wants recorded on the way can be.
    fn ask_writer(
        &mut self,
        brief: &Brief,
        wanted: usize,
    ) -> Result<Result<Vec<Proposal>, WriterError>, RunError> {
        let mut writer = std::mem::replace(&mut self.writer, Box::new(Absent));
        let proposals = self.attended(|| writer.propose(brief, wanted));
        self.writer = writer;
        proposals
    }

    /// Puts a proposal into the object store, makes its working copy and records it.
    pub(crate) fn record_proposal(
        &mut self,
        proposal: &Proposal,
        round: u32,
        role: Role,
    ) -> Result<(), RunError> {
        let id = format!("c{:04}", self.memory.candidates.len() + 1);
        let inspected = self.inspect(proposal, role)?;
        // Nothing of a folder that holds a secret or a link goes into the record.
        let tree = if inspected.is_storable {
            self.ledger.objects().put_tree(&proposal.folder)?
        } else {
            self.ledger.objects().put_files([])?
        };
        let folder = self.dir().join("candidates").join(&id);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(RunError::io("remove", &folder))?;
        }
        self.ledger.objects().extract(tree, &folder)?;
        // A folder that is no candidate is data as well: the quick pass turns it away by name.
        let digest = Candidate::load(&folder).map_or(tree.tree, |candidate| candidate.digest());
        let writer = match role {
            Role::FlagControl => "loop".to_owned(),
            Role::Candidate | Role::Seed | Role::Baseline => self.writer.name(),
        };
        self.append(Proposed {
            candidate: id.clone(),
            role,
            round,
            parents: proposal.parent.iter().cloned().collect(),
            writer,
            family: self.instance.task().contract().family.clone(),
            direction: proposal.direction.clone(),
            hypothesis: proposal.hypothesis.clone(),
            predicted: proposal.predicted_gain,
            tree,
            digest,
            consulted: Vec::new(),
            detail: serde_json::Value::Null,
        })?;
        self.refuse(&id, inspected)
    }

    /// Compiles a round before any of it is timed.
    pub(crate) fn build_ahead(&mut self, round: u32) -> Result<(), RunError> {
        self.stage(Stage::Check, None);
        let folders: Vec<PathBuf> = self
            .memory
            .candidates
            .iter()
            .filter(|candidate| candidate.proposed.round == round)
            .map(|candidate| self.dir().join("candidates").join(&candidate.proposed.candidate))
            .collect();
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        self.arena.build_ahead(&folders);
        Ok(())
    }

    /// An empty folder for the proposals of a round.
    pub(crate) fn workspace(&self, round: u32) -> Result<PathBuf, RunError> {
        let folder = self.dir().join("work").join(format!("round-{round}"));
        remove(&folder)?;
        std::fs::create_dir_all(&folder).map_err(RunError::io("create", &folder))?;
        Ok(folder)
    }

    /// What a writer may know.
    pub(crate) fn brief(&self, closed: &[String], out: PathBuf) -> Result<Brief, RunError> {
        let budget = self.memory.budget();
        let champion = match self.memory.champion() {
            Some(champion) => self.entrant(champion)?.folder,
            None => self.baseline.clone(),
        };
        let digest = self.mechanisms.has(Mechanism::Digest);
        // Gains are over the champion of their round, which changes at the round's end.
        let mut past: Vec<&Candidacy> = self.memory.candidates.iter().collect();
        past.sort_by_key(|candidacy| (candidacy.proposed.round, candidacy.is_accepted()));
        let notes = closed
            .iter()
            .map(|direction| format!("direction `{direction}` is closed: it had its tries without a gain"))
            .chain(crate::course::directives(&self.memory))
            .chain(
                crate::course::decided(&self.memory)
                    .map(|(key, choice)| format!("decided by a person: {key}: {choice}")),
            )
            .collect();
        Ok(Brief {
            threads: crate::writer::threads(&self.instance),
            champion,
            history: past
                .into_iter()
                .map(|candidacy| self.outcome(candidacy, digest))
                .collect(),
            left: BudgetLeft {
                // A step that was cut short and is begun anew says the same again.
                wall_s: budget.left(&self.memory.spent_before_step).as_secs_f64(),
                candidates: u32::try_from(budget.candidates.saturating_sub(self.memory.spent.candidates))
                    .unwrap_or(u32::MAX),
                cost_usd: (budget.cost_usd - self.memory.spent_before_step.cost_usd).max(0.0),
                tokens: budget
                    .tokens
                    .map(|tokens| tokens.saturating_sub(self.memory.spent_before_step.tokens)),
            },
            notes,
            ..Brief::opening(&self.instance, self.backend, None, self.seed, &out)
        })
    }

    fn outcome(&self, candidacy: &Candidacy, with_evidence: bool) -> Outcome {
        let proposed = &candidacy.proposed;
        let (verdict, code, measured) = match (&candidacy.decided, &candidacy.screened) {
            (None, _) if candidacy.refused.is_some() => {
                ("reject", candidacy.refused.clone().unwrap_or_default(), None)
            }
            (Some(decided), _) => (
                word(decided.verdict.verdict),
                decided.verdict.code.clone(),
                decided.verdict.speedup.map(|speedup| speedup.point),
            ),
            (None, Some(screened)) if screened.kept => ("revise", "screen/passed".to_owned(), screened.ratio),
            (None, Some(screened)) => (
                "reject",
                screened.code.clone().unwrap_or_default(),
                screened.ratio,
            ),
            (None, None) => ("error", "screen/not-run".to_owned(), None),
        };
        // What a claim about these files could name, and what the judge saw.
        let record = candidacy
            .decided
            .as_ref()
            .map(|decided| format!("verdict {}", decided.verdict.digest()));
        let lesson = self.lessons.get(&proposed.candidate).cloned();
        let parts: Vec<String> = record.into_iter().chain(lesson).collect();
        let evidence = if with_evidence {
            parts.join(": ")
        } else {
            String::new()
        };
        Outcome {
            candidate: proposed.candidate.clone(),
            hypothesis: proposed.hypothesis.clone(),
            direction: proposed.direction.clone(),
            predicted: proposed.predicted,
            verdict: verdict.to_owned(),
            code,
            measured,
            evidence,
        }
    }
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Accept => "accept",
        Decision::Revise => "revise",
        Decision::Reject => "reject",
        Decision::Ambiguous => "ambiguous",
        Decision::Error => "error",
    }
}

/// Removes a folder of proposals, if it is there.
pub(super) fn remove(folder: &Path) -> Result<(), RunError> {
    match std::fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(RunError::io("remove", folder)(error)),
    }
}
