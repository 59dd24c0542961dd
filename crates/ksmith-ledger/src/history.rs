//! A run as told by its records: one fold that views, look-ups, certificates and reports share.

use std::path::{Path, PathBuf};

use ksmith_task::Digest;

use crate::verify::{self, Damage};
use crate::{
    Audited, BenchStage, Benched, BudgetSpent, Checked, Closed, Confirmed, Decided, Decision, Demoted, Draft,
    Entry, Gate, GateOutcome, GateResult, Interrupted, LEDGER_FILE, ModelAccount, Note, Outcome, Plan,
    ProcessGate, Profiled, Promoted, Proposed, Record, Reviewed, Role, RunOpened, Screened, SeedCommitment,
    Speedup, Tested, Verdict,
};

/// Why a run could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The ledger cannot be read.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The chain is damaged.
    #[error("the record is damaged: {0}")]
    Damaged(Box<Damage>),
    /// The ledger holds no record yet.
    #[error("`{}` holds no record", .0.display())]
    Empty(PathBuf),
    /// A body that cannot be read.
    #[error("record {seq} has a body of another shape")]
    Body {
        /// The record.
        seq: u64,
        /// The cause.
        source: serde_json::Error,
    },
}

/// Reads all records of a run and checks the chain (not the blobs; that is what `verify` does).
pub fn read_records(run_dir: &Path) -> Result<Vec<Record>, ReadError> {
    let path = run_dir.join(LEDGER_FILE);
    let bytes = std::fs::read(&path).map_err(|source| ReadError::Io { path, source })?;
    let scan = verify::scan(&bytes);
    match scan.damage {
        None => Ok(scan.records),
        Some(damage) => Err(ReadError::Damaged(Box::new(damage))),
    }
}

/// How many candidates got no statement, and why.
pub(crate) fn unstated_words(count: u64) -> String {
    let candidates = if count == 1 { "candidate" } else { "candidates" };
    format!("{count} {candidates}: the machine was too busy or too noisy, or the time was up")
}

/// A run, folded from its records.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The first record.
    pub opened: RunOpened,
    /// When the run was opened.
    pub opened_at: String,
    /// Time of the last record.
    pub last_at: String,
    /// The task audit.
    pub audit: Option<Audited>,
    /// Drafts, in order; the last accepted one holds.
    pub drafts: Vec<Draft>,
    /// Plans, in order; the last accepted one holds.
    pub plans: Vec<Plan>,
    /// Every seed that was committed to.
    pub seeds: Vec<SeedCommitment>,
    /// Candidates in order of proposal.
    pub candidates: Vec<CandidateHistory>,
    /// Screened configurations that have no candidate id.
    pub screened: Vec<Screened>,
    /// Id of the champion; absent while the baseline stands.
    pub champion: Option<String>,
    /// Last word on the budget.
    pub budget: Option<BudgetSpent>,
    /// Interruptions with their times.
    pub interruptions: Vec<(String, Interrupted)>,
    /// How often the run was resumed.
    pub resumes: u64,
    /// Remarks with their times.
    pub notes: Vec<(String, Note)>,
    /// Every review with its time, those of candidates included.
    pub reviews: Vec<(String, Reviewed)>,
    /// Gates on the process that fired, with their times.
    pub process: Vec<(String, ProcessGate)>,
    /// Seconds spent waiting.
    pub waited_s: f64,
    /// Calls to models.
    pub models: ModelAccount,
    /// The closing record.
    pub closed: Option<Closed>,
    /// Number of records.
    pub records: u64,
    /// Hash of the last record.
    pub head: Digest,
}

/// All that the record says of one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateHistory {
    /// Its proposal.
    pub proposed: Proposed,
    /// When it was proposed.
    pub proposed_at: String,
    /// Time of the last record about it.
    pub last_at: String,
    /// The process gate that refused it.
    pub refused: Option<ProcessGate>,
    /// Its screening.
    pub screened: Option<Screened>,
    /// Its check.
    pub checked: Option<Checked>,
    /// Its test.
    pub tested: Option<Tested>,
    /// Its measurements with their times.
    pub benched: Vec<(String, Benched)>,
    /// Its profiles.
    pub profiled: Vec<Profiled>,
    /// Its reviews.
    pub reviewed: Vec<Reviewed>,
    /// The decision.
    pub decided: Option<Decided>,
    /// Its confirmations.
    pub confirmed: Vec<Confirmed>,
    /// Its promotion.
    pub promoted: Option<Promoted>,
    /// Its fall, if a last confirmation refused it.
    pub demoted: Option<Demoted>,
    /// The candidate that took its place as champion.
    pub superseded_by: Option<String>,
}

/// Where a candidate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing is decided yet.
    InFlight,
    /// It stayed in screening; others of its round looked faster and were scored instead.
    Screened,
    /// A gate failed before or during the scoring.
    Rejected,
    /// Correct, and bounded to be no faster than needed.
    NoGain,
    /// Correct and undecided.
    Revise,
    /// The machine was too busy.
    Ambiguous,
    /// The judge could not judge.
    Error,
    /// Decided as accept, not confirmed yet.
    Unconfirmed,
    /// Decided as accept, and the confirmation did not repeat it.
    NotConfirmed,
    /// Confirmed, and not made champion.
    Confirmed,
    /// The champion.
    Champion,
    /// A champion of earlier rounds.
    Superseded,
    /// A champion that its last confirmation refused.
    Demoted,
}

impl Status {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in flight",
            Self::Screened => "screened",
            Self::Rejected => "rejected",
            Self::NoGain => "no gain",
            Self::Revise => "revise",
            Self::Ambiguous => "ambiguous",
            Self::Error => "error",
            Self::Unconfirmed => "unconfirmed",
            Self::NotConfirmed => "not confirmed",
            Self::Confirmed => "confirmed",
            Self::Champion => "champion",
            Self::Superseded => "superseded",
            Self::Demoted => "demoted",
        }
    }
}

impl CandidateHistory {
    fn new(proposed: Proposed, time: &str) -> Self {
        Self {
            proposed,
            proposed_at: time.to_owned(),
            last_at: time.to_owned(),
            refused: None,
            screened: None,
            checked: None,
            tested: None,
            benched: Vec::new(),
            profiled: Vec::new(),
            reviewed: Vec::new(),
            decided: None,
            confirmed: Vec::new(),
            promoted: None,
            demoted: None,
            superseded_by: None,
        }
    }

    /// The candidate's id.
    pub fn id(&self) -> &str {
        &self.proposed.candidate
    }

    /// The last confirmation that says something. One on a machine that was too busy or too noisy takes nothing back.
    pub fn confirmation(&self) -> Option<&Confirmed> {
        self.confirmed
            .iter()
            .rev()
            .find(|confirmed| confirmed.verdict.verdict.is_statement())
    }

    /// The verdict that holds: the last confirmation that says something, else the decision.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.confirmation()
            .map(|confirmed| &confirmed.verdict)
            .or_else(|| self.decided.as_ref().map(|decided| &decided.verdict))
            .or_else(|| self.confirmed.last().map(|confirmed| &confirmed.verdict))
    }

    /// Whether it was scored and nothing could be said of it.
    pub fn is_unstated(&self) -> bool {
        self.verdict()
            .is_some_and(|verdict| !verdict.verdict.is_statement())
    }

    /// The last measurement, a confirmation before a decision before a screening; one that was fit for a statement
    /// before one that was not.
    pub fn bench(&self) -> Option<&Benched> {
        let is_fit = |benched: &Benched| benched.gates.iter().all(|gate| gate.result != GateOutcome::Error);
        let last = |stage: BenchStage, fit: bool| {
            self.benched
                .iter()
                .rev()
                .map(|(_, benched)| benched)
                .find(|benched| benched.stage == stage && is_fit(benched) == fit)
        };
        let stages = [BenchStage::Confirmation, BenchStage::Decision, BenchStage::Screen];
        [true, false]
            .into_iter()
            .find_map(|fit| stages.into_iter().find_map(|stage| last(stage, fit)))
    }

    /// Gates that ran, in order: those of the verdict that holds, else those of the steps so far.
    pub fn gates(&self) -> Vec<&GateResult> {
        if let Some(verdict) = self.verdict().filter(|verdict| !verdict.gates.is_empty()) {
            return verdict.gates.iter().collect();
        }
        let checked = self.checked.iter().flat_map(|checked| &checked.gates);
        let tested = self.tested.iter().flat_map(|tested| &tested.gates);
        checked
            .chain(tested)
            .chain(self.bench().into_iter().flat_map(|benched| &benched.gates))
            .collect()
    }

    /// The stable code that sums the candidate up so far.
    pub fn code(&self) -> Option<&str> {
        if let Some(verdict) = self.verdict() {
            return Some(&verdict.code);
        }
        let steps = [
            self.refused.as_ref().map(|gate| gate.code.as_str()),
            self.screened.as_ref().and_then(|step| step.code.as_deref()),
            self.checked.as_ref().and_then(|step| step.code.as_deref()),
            self.tested.as_ref().and_then(|step| step.code.as_deref()),
            self.bench().and_then(|step| step.code.as_deref()),
        ];
        steps.into_iter().flatten().next()
    }

    /// Gain over the champion of its time.
    pub fn over_champion(&self) -> Option<Speedup> {
        self.verdict()
            .and_then(|v| v.speedup)
            .or_else(|| self.bench().and_then(|b| b.over_champion))
    }

    /// Gain over the baseline.
    pub fn over_baseline(&self) -> Option<Speedup> {
        self.verdict()
            .and_then(|v| v.over_baseline)
            .or_else(|| self.bench().and_then(|b| b.over_baseline))
    }

    /// Gain over the flag control.
    pub fn over_flag_control(&self) -> Option<Speedup> {
        self.verdict()
            .and_then(|v| v.over_flag_control)
            .or_else(|| self.bench().and_then(|b| b.over_flag_control))
    }

    /// Where the candidate stands.
    pub fn status(&self) -> Status {
        if self.demoted.is_some() {
            return Status::Demoted;
        }
        if self.promoted.is_some() {
            return if self.superseded_by.is_some() {
                Status::Superseded
            } else {
                Status::Champion
            };
        }
        let confirmed = self.confirmation().map(|confirmed| confirmed.verdict.verdict);
        let Some(decided) = self.decided.as_ref() else {
            return match confirmed {
                Some(Decision::Accept) => Status::Confirmed,
                Some(_) => Status::NotConfirmed,
                None if self.code().is_some() => Status::Rejected,
                None if self.screened.is_some() => Status::Screened,
                None => Status::InFlight,
            };
        };
        match (decided.verdict.verdict, confirmed) {
            (_, Some(Decision::Accept)) => Status::Confirmed,
            (Decision::Accept, Some(_)) => Status::NotConfirmed,
            (Decision::Accept, None) => Status::Unconfirmed,
            (Decision::Revise, _) => Status::Revise,
            (Decision::Ambiguous, _) => Status::Ambiguous,
            (Decision::Error, _) => Status::Error,
            (Decision::Reject, _) => match decided.verdict.gate {
                Some(Gate::Gain | Gate::Slow | Gate::Regression | Gate::Distributions) => Status::NoGain,
                _ => Status::Rejected,
            },
        }
    }

    /// Why it was dropped or kept, in the judge's words; absent while nothing is decided.
    pub fn reason(&self) -> Option<&str> {
        if let Some(demoted) = &self.demoted {
            return Some(&demoted.reason);
        }
        let confirmed = self.confirmation().map(|confirmed| confirmed.reason.as_str());
        confirmed
            .filter(|reason| !reason.is_empty())
            .or_else(|| self.decided.as_ref().map(|decided| decided.reason.as_str()))
    }

    /// Whether every correctness gate that ran passed and the test step is done.
    pub fn is_correct(&self) -> bool {
        let gates = self.gates();
        let tested = self.tested.as_ref().is_some_and(|tested| tested.code.is_none());
        let scored = gates.iter().any(|gate| gate.name >= Gate::Bench);
        (tested || scored)
            && gates.iter().all(|gate| {
                gate.name >= Gate::Bench || matches!(gate.result, GateOutcome::Pass | GateOutcome::Skipped)
            })
    }
}

impl History {
    /// Reads a run folder.
    pub fn load(run_dir: &Path) -> Result<Self, ReadError> {
        let records = read_records(run_dir)?;
        Self::fold(&records)?.ok_or_else(|| ReadError::Empty(run_dir.join(LEDGER_FILE)))
    }

    /// Folds records; `None` for an empty chain.
    pub fn fold(records: &[Record]) -> Result<Option<Self>, ReadError> {
        let entry = |record: &Record| {
            record.entry().map_err(|source| ReadError::Body {
                seq: record.seq,
                source,
            })
        };
        let Some((first, rest)) = records.split_first() else {
            return Ok(None);
        };
        let Entry::RunOpened(opened) = entry(first)? else {
            return Ok(None);
        };
        let mut history = Self {
            seeds: opened.seeds.clone(),
            opened,
            opened_at: first.time.clone(),
            last_at: first.time.clone(),
            audit: None,
            drafts: Vec::new(),
            plans: Vec::new(),
            candidates: Vec::new(),
            screened: Vec::new(),
            champion: None,
            budget: None,
            interruptions: Vec::new(),
            resumes: 0,
            notes: Vec::new(),
            reviews: Vec::new(),
            process: Vec::new(),
            waited_s: 0.0,
            models: ModelAccount::default(),
            closed: None,
            records: records.len() as u64,
            head: records.last().map_or(first.hash, |record| record.hash),
        };
        for record in rest {
            history.apply(entry(record)?, &record.time);
        }
        Ok(Some(history))
    }

    fn apply(&mut self, entry: Entry, time: &str) {
        self.last_at = time.to_owned();
        match entry {
            Entry::RunOpened(_)
            | Entry::Shortlisted(_)
            | Entry::AgentCall(_)
            | Entry::ToolCall(_)
            | Entry::Asked(_)
            | Entry::Answered(_) => {}
            Entry::Audited(body) => self.audit = Some(body),
            Entry::Draft(body) => self.drafts.push(body),
            Entry::Plan(body) => self.plans.push(body),
            Entry::Committed(body) => self.seeds.push(body.seed),
            Entry::Proposed(body) => self.candidates.push(CandidateHistory::new(body, time)),
            Entry::Screened(body) => match &body.candidate {
                Some(id) => {
                    let id = id.clone();
                    self.touch(&id, time, |candidate| candidate.screened = Some(body));
                }
                None => self.screened.push(body),
            },
            Entry::Checked(body) => {
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.checked = Some(body)
                });
            }
            Entry::Tested(body) => {
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.tested = Some(body)
                });
            }
            Entry::Benched(body) => {
                let at = time.to_owned();
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.benched.push((at, body))
                });
            }
            Entry::Profiled(body) => {
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.profiled.push(body)
                });
            }
            Entry::Reviewed(body) => {
                self.reviews.push((time.to_owned(), body.clone()));
                if let Some(id) = body.candidate.clone() {
                    self.touch(&id, time, |candidate| candidate.reviewed.push(body));
                }
            }
            Entry::ProcessGate(body) => {
                self.process.push((time.to_owned(), body.clone()));
                if let (Some(id), true) = (body.candidate.clone(), body.refused) {
                    self.touch(&id, time, |candidate| candidate.refused = Some(body));
                }
            }
            Entry::Waited(body) => self.waited_s += body.seconds,
            Entry::Decided(body) => {
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.decided = Some(body)
                });
            }
            Entry::Confirmed(body) => {
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.confirmed.push(body)
                });
            }
            Entry::Promoted(body) => {
                let id = body.candidate.clone();
                if let Some(previous) = self.champion.replace(id.clone()) {
                    let next = id.clone();
                    self.touch(&previous, time, |candidate| candidate.superseded_by = Some(next));
                }
                self.touch(&id, time, |candidate| {
                    candidate.superseded_by = None;
                    candidate.promoted = Some(body);
                });
            }
            Entry::Demoted(body) => {
                self.champion.clone_from(&body.champion);
                if let Some(again) = &body.champion {
                    self.touch(&again.clone(), time, |candidate| candidate.superseded_by = None);
                }
                self.touch(&body.candidate.clone(), time, |candidate| {
                    candidate.demoted = Some(body)
                });
            }
            Entry::Resumed(_) => self.resumes += 1,
            Entry::Interrupted(body) => self.interruptions.push((time.to_owned(), body)),
            Entry::BudgetSpent(body) => self.budget = Some(body),
            Entry::Note(body) => self.notes.push((time.to_owned(), body)),
            Entry::ModelSent(body) => self.models.sent(&body),
            Entry::ModelCall(body) => self.models.ended(&body),
            Entry::Closed(body) => self.closed = Some(body),
        }
    }

    /// Changes the last candidate of this id; steps of something never proposed (the baseline, say) have no row.
    fn touch(&mut self, id: &str, time: &str, change: impl FnOnce(&mut CandidateHistory)) {
        if let Some(candidate) = self
            .candidates
            .iter_mut()
            .rev()
            .find(|candidate| candidate.id() == id)
        {
            candidate.last_at = time.to_owned();
            change(candidate);
        }
    }

    /// The candidate of this id.
    pub fn candidate(&self, id: &str) -> Option<&CandidateHistory> {
        self.candidates
            .iter()
            .rev()
            .find(|candidate| candidate.id() == id)
    }

    /// The champion; absent while the baseline stands.
    pub fn champion(&self) -> Option<&CandidateHistory> {
        self.candidate(self.champion.as_deref()?)
    }

    /// Candidates whose scoring ended without a statement, those included that the end of the wall time cut short.
    pub fn unstated(&self) -> u64 {
        self.candidates
            .iter()
            .filter(|candidate| candidate.is_unstated() || self.was_cut_short(candidate))
            .count() as u64
    }

    /// Whether its only scoring was halted: a note of the tool names it.
    fn was_cut_short(&self, candidate: &CandidateHistory) -> bool {
        let named =
            |note: &Note| note.data.get("halted").and_then(serde_json::Value::as_str) == Some(candidate.id());
        candidate.decided.is_none() && self.notes.iter().any(|(_, note)| named(note))
    }

    /// Whether the machine allowed no statement at all: something was scored, there is no champion, and no gain could be
    /// bounded either way. The flag control does not count where a writer's candidate was scored.
    pub fn allows_no_statement(&self) -> bool {
        let scored = || {
            self.candidates
                .iter()
                .filter(|candidate| candidate.decided.is_some())
        };
        let is_own = |candidate: &&CandidateHistory| candidate.proposed.role != Role::FlagControl;
        let any_own = scored().any(|candidate| is_own(&candidate));
        let counted = || scored().filter(|candidate| !any_own || is_own(candidate));
        let is_stated = |candidate: &CandidateHistory| {
            candidate
                .verdict()
                .is_some_and(|verdict| verdict.verdict.is_statement() && verdict.speedup.is_some())
        };
        self.champion.is_none() && counted().any(CandidateHistory::is_unstated) && !counted().any(is_stated)
    }

    /// Whether the gain of some candidate was bounded, one way or the other.
    fn is_measured(&self) -> bool {
        self.candidates.iter().any(|candidate| {
            candidate
                .verdict()
                .is_some_and(|verdict| verdict.verdict.is_statement() && verdict.speedup.is_some())
        })
    }

    /// What stands where there is no champion, in words. That the baseline stands is said only where something was
    /// measured against it.
    pub fn without_champion(&self) -> String {
        if self.is_refused() {
            return "the task does not pass its own audit, so nothing was judged".into();
        }
        let is_scored = self
            .candidates
            .iter()
            .any(|candidate| candidate.decided.is_some());
        let is_screened = || {
            self.candidates
                .iter()
                .filter_map(|candidate| candidate.screened.as_ref())
                .chain(&self.screened)
                .any(|screened| screened.ratio.is_some())
        };
        let words = match self.unstated() {
            0 if self.is_measured() => "the baseline stands".into(),
            0 if is_scored => {
                "nothing was measured, since every scored candidate failed a gate before the timing".into()
            }
            0 if is_screened() => "no candidate was scored in full, only screened".into(),
            0 => "nothing was measured".into(),
            count => format!("no statement was possible on {}", unstated_words(count)),
        };
        match self.closed {
            Some(_) => words,
            None => format!("{words} so far"),
        }
    }

    /// Whether the task's own audit refused it: such a run never begins.
    fn is_refused(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| !audit.passed)
    }

    /// How the run ended or stands, in words that are true of it. The outcome of the record says only whether the goal
    /// was met; where nothing could be said, it was neither met nor missed.
    pub fn ending(&self) -> &'static str {
        let last = self.interruptions.last().map(|(time, _)| time);
        match self.closed.as_ref().map(|closed| closed.outcome) {
            None if self.is_refused() => "refused by its audit",
            None if last == Some(&self.last_at) => "interrupted",
            None => "open",
            Some(Outcome::GoalMet) => "goal met",
            Some(Outcome::Interrupted) => "interrupted",
            Some(Outcome::GoalNotMet) if self.allows_no_statement() => "no statement possible",
            Some(Outcome::GoalNotMet) if self.champion.is_none() && !self.is_measured() => "nothing measured",
            Some(Outcome::GoalNotMet) => "goal not met",
        }
    }

    /// The plan that holds.
    pub fn plan(&self) -> Option<&Plan> {
        self.plans.iter().rev().find(|plan| plan.accepted)
    }

    /// The draft that holds.
    pub fn draft(&self) -> Option<&Draft> {
        self.drafts.iter().rev().find(|draft| draft.accepted)
    }
}
