//! What a run knows of itself: a pure fold over its records.
//!
//! Nothing else holds state, so a run that was killed continues exactly where its last record stands.

use std::collections::BTreeMap;

use ksmith_ledger::{
    Answered, Asked, Audited, Benched, Closed, Confirmed, Decided, Decision, Demoted, Draft, Entry, Gate,
    ModelAccount, Plan, ProcessGate, Promoted, Proposed, Reviewed, Role, RunOpened, Scope, Screened,
    Shortlisted, Speedup, ToolCall, Verdict,
};

use crate::{Budget, Spent};

/// Id under which the task's baseline stands in the records.
pub const BASELINE: &str = "baseline";

/// One candidate and all that is recorded of it.
#[derive(Debug, Clone)]
pub struct Candidacy {
    /// As proposed.
    pub proposed: Proposed,
    /// The code of the process gate that refused it.
    pub refused: Option<String>,
    /// The quick pass.
    pub screened: Option<Screened>,
    /// Every gate and the last decision.
    pub decided: Option<Decided>,
    /// How often it was scored: again only where the machine allowed no statement.
    pub scorings: u32,
}

impl Candidacy {
    /// Gain over the champion in the quick pass; a hint, never evidence.
    pub fn quick_gain(&self) -> Option<f64> {
        self.screened.as_ref().filter(|screened| screened.kept)?.ratio
    }

    /// Whether a process gate or the quick pass turned it away.
    pub fn left_in_screening(&self) -> bool {
        self.refused.is_some() || self.screened.as_ref().is_some_and(|screened| !screened.kept)
    }

    /// The code under which it was dropped; absent for one that was kept, is undecided or was never judged.
    pub fn dropped(&self) -> Option<&str> {
        if let Some(decided) = &self.decided {
            return match decided.verdict.verdict {
                Decision::Reject => Some(&decided.verdict.code),
                Decision::Accept | Decision::Revise | Decision::Ambiguous | Decision::Error => None,
            };
        }
        let screened = self.screened.as_ref().filter(|screened| !screened.kept);
        self.refused
            .as_deref()
            .or_else(|| screened.and_then(|screened| screened.code.as_deref()))
    }

    /// Whether the machine allowed no statement on it: too busy, or too noisy.
    pub fn is_unstated(&self) -> bool {
        self.decided
            .as_ref()
            .is_some_and(|decided| match decided.verdict.verdict {
                Decision::Ambiguous | Decision::Error => decided.verdict.gate == Some(Gate::Bench),
                Decision::Accept | Decision::Revise | Decision::Reject => false,
            })
    }

    /// Whether a gate of the full pass turned it away.
    pub fn failed_a_gate(&self) -> bool {
        self.decided
            .as_ref()
            .is_some_and(|decided| match decided.verdict.verdict {
                Decision::Reject => decided.verdict.speedup.is_none(),
                Decision::Accept | Decision::Revise | Decision::Ambiguous | Decision::Error => false,
            })
    }

    /// Whether the full pass accepted it.
    pub fn is_accepted(&self) -> bool {
        self.decided
            .as_ref()
            .is_some_and(|decided| match decided.verdict.verdict {
                Decision::Accept => true,
                Decision::Revise | Decision::Reject | Decision::Ambiguous | Decision::Error => false,
            })
    }
}

/// What a run knows of itself.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// First record.
    pub opened: Option<RunOpened>,
    /// The audit.
    pub audit: Option<Audited>,
    /// The baseline's own measurement.
    pub baseline: Option<Benched>,
    /// The draft that passed its gate.
    pub draft: Option<Draft>,
    /// The plan that passed its gate.
    pub plan: Option<Plan>,
    /// Candidates in order.
    pub candidates: Vec<Candidacy>,
    /// Reviews, oldest first, each with the number of promotions before it.
    pub reviews: Vec<(usize, Reviewed)>,
    /// Gates on the process that fired, oldest first, each with the number of promotions before it.
    pub process: Vec<(usize, ProcessGate)>,
    /// Questions put to a person, each with the time at which it was asked.
    pub asked: Vec<(f64, Asked)>,
    /// Questions that are settled.
    pub answered: Vec<Answered>,
    /// The best of the quick pass beside each other: once there is one, the rounds are over.
    pub shortlist: Option<Shortlisted>,
    /// Promotions, oldest first.
    pub promotions: Vec<Promoted>,
    /// Champions that their last confirmation refused, oldest first.
    pub demotions: Vec<Demoted>,
    /// Last confirmations, oldest first: of a champion more than one only where the machine allowed no statement.
    pub finals: Vec<Confirmed>,
    /// Number of confirmations so far: each later one gets a smaller share of the error rate.
    pub confirmations: u32,
    /// Purposes of the seeds committed to, in order.
    pub committed: Vec<String>,
    /// Calls to models.
    pub models: ModelAccount,
    /// Calls of tools by the step that is not on record yet, oldest first.
    pub tools_since_step: Vec<ToolCall>,
    /// What was spent.
    pub spent: Spent,
    /// What was spent when the step that is not on record yet began: the same however often it is begun anew.
    pub spent_before_step: Spent,
    /// The longest full scoring so far, in seconds: what must be kept for the last confirmation.
    pub longest_scoring_s: f64,
    /// Full scorings that came to no measurement.
    pub unmeasured: u64,
    /// Why the rounds ended, once they have.
    pub stop: Option<String>,
    /// Last record.
    pub closed: Option<Closed>,
    /// Number of records.
    pub records: u64,
    champion: Option<String>,
    /// Candidates whose scoring was halted.
    halted: Vec<String>,
    last_time_s: Option<f64>,
}

/// A record that does not fit those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The first record does not open a run.
    #[error("the first record is `{0}`; expected `run-opened`")]
    NotARun(&'static str),
    /// A verdict is about other files than those that were proposed.
    #[error("the verdict on candidate `{0}` is about other files")]
    OtherFiles(String),
    /// A record names a candidate that nobody proposed.
    #[error("a record names candidate `{0}`, which nobody proposed")]
    UnknownCandidate(String),
}

impl Memory {
    /// A candidate by id.
    pub fn candidate(&self, id: &str) -> Option<&Candidacy> {
        self.candidates
            .iter()
            .find(|candidate| candidate.proposed.candidate == id)
    }

    /// The champion, if the baseline no longer stands.
    pub fn champion(&self) -> Option<&Candidacy> {
        self.candidate(self.champion.as_deref()?)
    }

    /// The champion's last confirmations, oldest first.
    pub fn finals_of_champion(&self) -> impl DoubleEndedIterator<Item = &Confirmed> {
        self.finals
            .iter()
            .filter(move |last| Some(&last.candidate) == self.champion.as_ref())
    }

    /// Candidates whose scoring ended without a statement, those included that the end of the wall time cut short.
    pub fn unstated(&self) -> u64 {
        let is_unstated = |candidate: &&Candidacy| match &candidate.decided {
            Some(decided) => !decided.verdict.verdict.is_statement(),
            None => self.halted.contains(&candidate.proposed.candidate),
        };
        self.candidates.iter().filter(is_unstated).count() as u64
    }

    /// The flag control: of the baseline's source under several flag sets the one that was scored, else the fastest
    /// in the quick pass.
    pub fn flag_control(&self) -> Option<&Candidacy> {
        let controls = || {
            self.candidates
                .iter()
                .filter(|c| c.proposed.role == Role::FlagControl)
        };
        let measured = |candidate: &&Candidacy| {
            candidate
                .decided
                .as_ref()
                .is_some_and(|decided| decided.verdict.speedup.is_some())
        };
        controls()
            .find(measured)
            .or_else(|| fastest(controls().filter(|c| !c.failed_a_gate() && c.quick_gain().is_some())))
    }

    /// Number of the last round, from 1; zero before the first.
    pub fn last_round(&self) -> u32 {
        self.candidates
            .last()
            .map_or(0, |candidate| candidate.proposed.round)
    }

    /// Whether a candidate has ever been promoted.
    pub fn is_promoted(&self, id: &str) -> bool {
        self.promotions.iter().any(|promoted| promoted.candidate == id)
    }

    /// How many rounds of `direction` have ended without a new champion since its last one; `None` counts all.
    pub fn rounds_without_gain(&self, direction: Option<&str>) -> u64 {
        let mut rounds: BTreeMap<u32, bool> = BTreeMap::new();
        for candidate in self.candidates.iter().map(|candidate| &candidate.proposed) {
            let other = direction.is_some_and(|direction| direction != candidate.direction);
            if candidate.role == Role::Candidate && !other {
                *rounds.entry(candidate.round).or_default() |= self.is_promoted(&candidate.candidate);
            }
        }
        rounds.values().rev().take_while(|gained| !**gained).count() as u64
    }

    /// Every direction that a writer has tried, in order of first appearance.
    pub fn directions(&self) -> Vec<&str> {
        let mut seen = Vec::new();
        for candidate in self.candidates.iter().map(|candidate| &candidate.proposed) {
            if candidate.role == Role::Candidate && !seen.contains(&candidate.direction.as_str()) {
                seen.push(&candidate.direction);
            }
        }
        seen
    }

    /// The verdict whose figures stand for the champion: its last confirmation that says something, else the one that
    /// promoted it.
    pub fn champion_verdict(&self) -> Option<&Verdict> {
        let champion = self.champion()?;
        self.finals_of_champion()
            .rev()
            .map(|last| &last.verdict)
            .find(|verdict| verdict.verdict.is_statement())
            .or_else(|| champion.decided.as_ref().map(|decided| &decided.verdict))
    }

    /// Confirmed gain of the champion over the task's baseline.
    pub fn over_baseline(&self) -> Option<Speedup> {
        self.champion_verdict()?.over_baseline
    }

    /// What the run may spend.
    pub fn budget(&self) -> Budget {
        let limits = self.opened.as_ref().map(|opened| &opened.budget);
        Budget {
            wall_s: limits.and_then(|limits| limits.wall_s).unwrap_or(f64::INFINITY),
            candidates: limits.and_then(|limits| limits.candidates).unwrap_or(u64::MAX),
            cost_usd: limits.and_then(|limits| limits.cost_usd).unwrap_or(f64::INFINITY),
            tokens: limits.and_then(|limits| limits.tokens),
            device_s: limits.and_then(|limits| limits.device_s),
        }
    }

    /// Adds one record, written at `time_s`.
    pub fn apply(&mut self, entry: &Entry, time_s: f64) -> Result<(), MemoryError> {
        if self.opened.is_none() && !matches!(entry, Entry::RunOpened(_)) {
            return Err(MemoryError::NotARun(entry.kind().name()));
        }
        // Time between two sittings is not spent: a sitting begins with `resumed`. Nor is time spent waiting.
        if let (Some(last), false) = (
            self.last_time_s,
            matches!(
                entry,
                Entry::Resumed(_) | Entry::Interrupted(_) | Entry::Waited(_)
            ),
        ) {
            self.spent.wall_s += (time_s - last).max(0.0);
        }
        self.last_time_s = Some(time_s);
        self.records += 1;
        let device_s = self.device_s(entry);
        self.spent.device_s += device_s;
        // With these the step that asked its models is on record: its calls are never asked again.
        if matches!(
            entry,
            Entry::Proposed(_) | Entry::Reviewed(_) | Entry::Draft(_) | Entry::Plan(_)
        ) {
            self.models.step_ended();
            self.tools_since_step.clear();
        }
        match entry {
            Entry::RunOpened(opened) => {
                self.committed
                    .extend(opened.seeds.iter().map(|seed| seed.purpose.clone()));
                self.opened = Some(opened.clone());
            }
            Entry::Audited(audit) => self.audit = Some(audit.clone()),
            Entry::Draft(draft) if draft.accepted => self.draft = Some(draft.clone()),
            Entry::Plan(plan) if plan.accepted => self.plan = Some(plan.clone()),
            Entry::Draft(_) | Entry::Plan(_) => {}
            Entry::Committed(committed) => self.committed.push(committed.seed.purpose.clone()),
            Entry::Proposed(proposed) => self.candidates.push(Candidacy {
                proposed: proposed.clone(),
                refused: None,
                screened: None,
                decided: None,
                scorings: 0,
            }),
            Entry::Screened(screened) => {
                self.spent.screened += 1;
                if let Some(id) = &screened.candidate {
                    self.candidacy(id)?.screened = Some(screened.clone());
                }
            }
            Entry::Shortlisted(list) => self.shortlist = Some(list.clone()),
            Entry::Benched(benched) if benched.candidate == BASELINE => self.baseline = Some(benched.clone()),
            Entry::Decided(decided) => {
                self.spent.candidates += 1;
                self.unmeasured += u64::from(decided.verdict.speedup.is_none());
                self.longest_scoring_s = self.longest_scoring_s.max(seconds(&decided.verdict));
                let candidacy = self.candidacy(&decided.candidate)?;
                candidacy.decided = Some(decided.clone());
                candidacy.scorings += 1;
            }
            Entry::Promoted(promoted) => {
                self.champion = Some(promoted.candidate.clone());
                self.promotions.push(promoted.clone());
            }
            Entry::Demoted(demoted) => {
                self.champion.clone_from(&demoted.champion);
                self.demotions.push(demoted.clone());
            }
            Entry::Confirmed(confirmed) => {
                self.confirmations += 1;
                // Those before the rounds ended belong to promotions.
                if self.stop.is_some() {
                    self.longest_scoring_s = self.longest_scoring_s.max(seconds(&confirmed.verdict));
                    self.finals.push(confirmed.clone());
                }
            }
            Entry::BudgetSpent(budget) => self.spent.cost_usd = budget.cost_usd,
            Entry::ModelSent(sent) => self.models.sent(sent),
            Entry::ModelCall(call) => self.models.ended(call),
            Entry::Note(note) => {
                if let Some(stop) = note.data.get("stop").and_then(serde_json::Value::as_str) {
                    self.stop = Some(stop.to_owned());
                }
                if let Some(id) = note.data.get("halted").and_then(serde_json::Value::as_str) {
                    self.halted.push(id.to_owned());
                }
            }
            Entry::Reviewed(reviewed) => self.reviews.push((self.promotions.len(), reviewed.clone())),
            Entry::ProcessGate(gate) => {
                if let (Some(id), true) = (&gate.candidate, gate.refused) {
                    self.candidacy(id)?.refused = Some(gate.code.clone());
                }
                self.process.push((self.promotions.len(), gate.clone()));
            }
            Entry::Asked(asked) => self.asked.push((time_s, asked.clone())),
            Entry::Answered(answered) => self.answered.push(answered.clone()),
            Entry::Closed(closed) => self.closed = Some(closed.clone()),
            Entry::Benched(_)
            | Entry::Checked(_)
            | Entry::Tested(_)
            | Entry::Profiled(_)
            | Entry::Waited(_)
            | Entry::Resumed(_)
            | Entry::Interrupted(_)
            | Entry::AgentCall(_)
            | Entry::ToolCall(_) => {}
        }
        if let Entry::ModelSent(_) | Entry::ModelCall(_) = entry {
            let totals = self.models.totals();
            (self.spent.cost_usd, self.spent.tokens) = (totals.cost_usd, totals.tokens());
        }
        let within_a_step = matches!(
            entry,
            Entry::ModelSent(_)
                | Entry::ModelCall(_)
                | Entry::AgentCall(_)
                | Entry::ToolCall(_)
                | Entry::Resumed(_)
                | Entry::Interrupted(_)
        );
        if !within_a_step {
            self.spent_before_step = self.spent;
        }
        if let Entry::ToolCall(call) = entry {
            self.tools_since_step.push(call.clone());
        }
        Ok(())
    }

    /// Seconds for which a record's work held the device. The quick pass is timed as a whole, with what of it is done on
    /// the host, so this is never too low.
    fn device_s(&self, entry: &Entry) -> f64 {
        if self
            .opened
            .as_ref()
            .is_none_or(|opened| opened.scope != Scope::Cuda)
        {
            return 0.0;
        }
        let on_device = |verdict: &Verdict| -> f64 {
            let gates = verdict.gates.iter();
            gates
                .filter(|gate| !matches!(gate.name, Gate::Policy | Gate::Compile | Gate::Static))
                .map(|gate| gate.ms)
                .sum()
        };
        let ms = match entry {
            Entry::Audited(audit) => audit.ms,
            Entry::Benched(benched) if benched.candidate == BASELINE => benched.ms,
            Entry::Screened(screened) => screened.ms,
            Entry::Shortlisted(list) => list.ms,
            Entry::Decided(decided) => on_device(&decided.verdict),
            // That of a promotion is part of its scoring.
            Entry::Confirmed(confirmed) if self.stop.is_some() => on_device(&confirmed.verdict),
            _ => 0.0,
        };
        ms / 1e3
    }

    fn candidacy(&mut self, id: &str) -> Result<&mut Candidacy, MemoryError> {
        self.candidates
            .iter_mut()
            .find(|candidate| candidate.proposed.candidate == id)
            .ok_or_else(|| MemoryError::UnknownCandidate(id.to_owned()))
    }
}

/// How long a full scoring took.
fn seconds(verdict: &Verdict) -> f64 {
    verdict.gates.iter().map(|gate| gate.ms).sum::<f64>() / 1e3
}

/// The candidate with the greatest quick gain; of equals the first.
pub(crate) fn fastest<'a>(candidates: impl Iterator<Item = &'a Candidacy>) -> Option<&'a Candidacy> {
    let gain = |candidate: &Candidacy| candidate.quick_gain().unwrap_or(0.0);
    candidates.reduce(|best, other| if gain(other) > gain(best) { other } else { best })
}
