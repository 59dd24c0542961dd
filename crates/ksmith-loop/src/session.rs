//! One sitting of one run: reads what comes next, does it, records it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ksmith_judge::Halt;
use ksmith_ledger::{Committed, Entry, Interrupted, Ledger, Note, Record};
use ksmith_task::{Backend, Candidate, Instance};

use crate::arena::{Arena, ArenaError, Entrant, Field, Promise};
use crate::guard::Guard;
use crate::judgement::Judgement;
use crate::memory::{BASELINE, Candidacy, Memory};
use crate::step::{self, Now, Step};
use crate::writer::Writer;
use crate::{Event, Interrupt, Mechanisms, Progress, RunError, Stage, Wishes};

/// How a sitting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sitting {
    /// The closing record is written.
    Closed,
    /// The user asked to stop; the run can be resumed.
    Interrupted,
}

/// Everything one sitting works with.
pub(crate) struct Session<'a> {
    pub(crate) ledger: Ledger,
    pub(crate) memory: Memory,
    pub(crate) instance: Instance,
    pub(crate) backend: Backend,
    /// The task as the user named it, for commands in texts.
    pub(crate) task_argument: String,
    pub(crate) baseline: PathBuf,
    pub(crate) guard: Guard,
    pub(crate) arena: Box<dyn Arena + 'a>,
    pub(crate) writer: Box<dyn Writer + 'a>,
    /// What the writer's and the gateways' threads want recorded.
    pub(crate) wishes: Wishes,
    /// Reviewer, process gates, questions to people.
    pub(crate) judgement: Judgement,
    pub(crate) mechanisms: Mechanisms,
    /// Seed of the writer's choices.
    pub(crate) seed: u64,
    pub(crate) interrupt: Interrupt,
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) writer_is_exhausted: bool,
    /// What a writer may learn of failed candidates, by id.
    pub(crate) lessons: std::collections::BTreeMap<String, String>,
    pub(crate) last_record: Instant,
}

impl Session<'_> {
    /// Works until the run is closed or the user wants to stop.
    pub(crate) fn drive(&mut self) -> Result<Sitting, RunError> {
        self.arena.halt_when(self.halt());
        loop {
            if self.memory.closed.is_none() {
                if self.interrupt.is_requested() {
                    self.append(Interrupted {
                        reason: "interrupt".into(),
                        torn: None,
                    })?;
                    return Ok(Sitting::Interrupted);
                }
                self.check_lock()?;
                self.grant_waiting()?;
            }
            let now = Now {
                since_record_s: self.last_record.elapsed().as_secs_f64(),
                writer_is_exhausted: self.writer_is_exhausted,
                goal_is_reached: self.goal_is_reached(),
                writer_says_done: self.judgement.statement.says_done(),
            };
            let step = step::next(&self.memory, &self.mechanisms, now);
            let done = match &step {
                Step::Audit => self.audit(),
                Step::Baseline => self.measure_baseline(),
                Step::Draft => self.draft(),
                Step::Plan => self.plan(),
                Step::FlagControl => self.propose_flag_control(),
                Step::Propose => self.propose(),
                Step::Screen(id) => self.screen(id),
                Step::Shortlist(stop) => self.shortlist(*stop),
                Step::Score(id) => self.score(id),
                Step::Ask(id) => self.ask(id),
                Step::ReviewCrown(id) => self.review_crown(id),
                Step::ReviewCourse(occasion, mark) => self.review_course(*occasion, mark),
                Step::CloseDirection(direction, code) => self.close_direction(direction, code),
                Step::Descend(rung) => self.descend(*rung),
                Step::Promote(id) => self.promote(id),
                Step::Demote(id) => self.demote(id),
                Step::Final(id, stop) => self.confirm(id, *stop),
                Step::Close(stop) => self.close(*stop),
                Step::Nothing => return Ok(Sitting::Closed),
            };
            match done {
                // The interrupt is read at the head of the loop; a spent wall time shows in the record's own times.
                Err(RunError::Arena(ArenaError::Halted)) if self.interrupt.is_requested() => {}
                Err(RunError::Arena(ArenaError::Halted)) => {
                    let (what, data) = match &step {
                        Step::Score(id) => (
                            format!("the scoring of {id}"),
                            serde_json::json!({ "halted": id }),
                        ),
                        Step::Final(id, _) => {
                            (format!("the last confirmation of {id}"), serde_json::Value::Null)
                        }
                        _ => ("a step of the judge".to_owned(), serde_json::Value::Null),
                    };
                    let text = format!("the wall time ended within {what}: nothing of it counts");
                    self.note(&text, data)?;
                }
                done => done?,
            }
            self.progress.event(&Event::Spent(self.memory.spent));
        }
    }

    /// When the judge leaves off within a step: the user asks for it, or the wall time is spent.
    fn halt(&self) -> Halt {
        let left = self.memory.budget().left(&self.memory.spent);
        let deadline = Instant::now().checked_add(left);
        let interrupt = self.interrupt.clone();
        Halt::when(move || {
            interrupt.is_requested() || deadline.is_some_and(|deadline| Instant::now() >= deadline)
        })
    }

    /// Appends one record and adds it to the memory; synced before it returns.
    pub(crate) fn append(&mut self, entry: impl Into<Entry>) -> Result<Record, RunError> {
        let entry = entry.into();
        let record = self.ledger.append(entry.clone())?;
        let time = record.unix_seconds().unwrap_or_default();
        self.memory
            .apply(&entry, time)
            .map_err(|source| self.contradiction(source))?;
        self.last_record = Instant::now();
        Ok(record)
    }

    /// Has the judge draw the secrets of the step to come, and records their commitments before the step begins.
    pub(crate) fn promise(&mut self, step: Promise) -> Result<(), RunError> {
        self.arena.promise(step)?;
        self.append_commitments()
    }

    /// Appends the commitments to secrets that the judge has drawn since the last time.
    pub(crate) fn append_commitments(&mut self) -> Result<(), RunError> {
        for seed in self.arena.commitments() {
            if !self.memory.committed.contains(&seed.purpose) {
                self.append(Committed { seed })?;
            }
        }
        Ok(())
    }

    /// Appends a remark and shows it.
    pub(crate) fn note(&mut self, text: &str, data: serde_json::Value) -> Result<(), RunError> {
        self.progress.event(&Event::Note(text));
        self.append(Note {
            text: text.to_owned(),
            data,
        })?;
        Ok(())
    }

    /// Does work on another thread and appends what it and its helpers want recorded, until it is over.
    pub(crate) fn attended<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        let (_, unused) = crate::recorder(self.ledger.objects().clone());
        let wishes = std::mem::replace(&mut self.wishes, unused);
        let mut failure = None;
        let done = wishes.attend(work, |entry| match self.append(entry) {
            Ok(_) => Ok(()),
            Err(error) => {
                let text = error.to_string();
                failure.get_or_insert(error);
                Err(text)
            }
        });
        self.wishes = wishes;
        match (failure, done) {
            (Some(error), _) => Err(error),
            (None, Ok(value)) => Ok(value),
            (None, Err(_)) => Err(RunError::Internal("a writer or reviewer panicked".into())),
        }
    }

    /// Appends what helpers of a step that is over still want recorded: a call whose agent is gone is read to its end.
    pub(crate) fn grant_waiting(&mut self) -> Result<(), RunError> {
        let (_, unused) = crate::recorder(self.ledger.objects().clone());
        let wishes = std::mem::replace(&mut self.wishes, unused);
        let mut failure = None;
        wishes.grant_waiting(|entry| match self.append(entry) {
            Ok(_) => Ok(()),
            Err(error) => {
                let text = error.to_string();
                failure.get_or_insert(error);
                Err(text)
            }
        });
        self.wishes = wishes;
        failure.map_or(Ok(()), Err)
    }

    /// Says and records what a person should know of the writer before it starts.
    pub(crate) fn say_remarks(&mut self) -> Result<(), RunError> {
        for remark in self.writer.remarks() {
            self.note(&remark, serde_json::Value::Null)?;
        }
        Ok(())
    }

    pub(crate) fn contradiction(&self, source: crate::memory::MemoryError) -> RunError {
        RunError::Record {
            run: self.dir().to_owned(),
            source,
        }
    }

    /// The run's folder.
    pub(crate) fn dir(&self) -> &Path {
        self.ledger.run_dir()
    }

    /// Tells whoever watches.
    pub(crate) fn stage(&mut self, stage: Stage, candidate: Option<&str>) {
        self.progress.event(&Event::Stage { stage, candidate });
    }

    /// A later edit of anything locked ends the sitting (DESIGN, invariant 9).
    fn check_lock(&mut self) -> Result<(), RunError> {
        let changed = self.guard.changed()?;
        if changed.is_empty() {
            return Ok(());
        }
        self.append(Interrupted {
            reason: format!("locked files changed: {}", changed.join(", ")),
            torn: None,
        })?;
        Err(RunError::Changed(changed))
    }

    fn goal_is_reached(&self) -> bool {
        let performance = &self.instance.task().contract().performance;
        match performance.stop {
            ksmith_task::contract::Stop::Goal => self.meets_goal(),
            ksmith_task::contract::Stop::Budget => false,
        }
    }

    /// Whether the champion's confirmed time ratio to the baseline has its upper bound at or below the goal.
    pub(crate) fn meets_goal(&self) -> bool {
        let goal = self.instance.task().contract().performance.goal.on(self.backend);
        self.memory
            .over_baseline()
            .is_some_and(|speedup| speedup.lower >= 1.0 / goal)
    }

    /// The baseline as a candidate.
    pub(crate) fn baseline(&self) -> Entrant {
        Entrant {
            id: BASELINE.into(),
            folder: self.baseline.clone(),
        }
    }

    /// The working copy of a candidate, restored from the object store where it is missing or was touched.
    pub(crate) fn entrant(&self, candidacy: &Candidacy) -> Result<Entrant, RunError> {
        let id = candidacy.proposed.candidate.clone();
        let folder = self.dir().join("candidates").join(&id);
        let intact = Candidate::load(&folder).is_ok_and(|found| found.digest() == candidacy.proposed.digest);
        if !intact {
            if folder.exists() {
                std::fs::remove_dir_all(&folder).map_err(RunError::io("remove", &folder))?;
            }
            self.ledger.objects().extract(candidacy.proposed.tree, &folder)?;
        }
        Ok(Entrant { id, folder })
    }

    /// The entrant of a candidate by id.
    pub(crate) fn entrant_by_id(&self, id: &str) -> Result<Entrant, RunError> {
        match self.memory.candidate(id) {
            Some(candidacy) => self.entrant(candidacy),
            None => Err(self.contradiction(crate::memory::MemoryError::UnknownCandidate(id.to_owned()))),
        }
    }

    /// Who else runs in the next measurement of `id`.
    pub(crate) fn field(&self, id: &str) -> Result<Field, RunError> {
        let entrant = |candidacy: Option<&Candidacy>| candidacy.map(|c| self.entrant(c)).transpose();
        let control = self
            .memory
            .flag_control()
            .filter(|control| control.proposed.candidate != id);
        Ok(Field {
            champion: entrant(
                self.memory
                    .champion()
                    .filter(|champion| champion.proposed.candidate != id),
            )?,
            flag_control: entrant(control)?,
        })
    }
}
