//! What a run cost and what came of it, computed from its record alone.
//!
//! No model has a part in it: claims against verdicts, rounds against gains, predictions against measurements.

mod figures;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use ksmith_ledger::{Decision, Entry, History, Role, Speedup, read_records};
use serde::Serialize;

use crate::planner::{StepState, states};
use crate::{Memory, RunError};
use figures::{median, share, spearman};

/// Predictions of success against verdicts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Claims {
    /// Candidates for which a gain was predicted and that came to a verdict or were refused.
    pub predicted: u64,
    /// Those of them that the judge accepted.
    pub accepted: u64,
    /// The accepted share; null without predictions.
    pub acceptance: Option<f64>,
    /// Statements of the writer that the record did not show.
    pub unproved: u64,
}

/// What was spent without a gain.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Waste {
    /// Rounds of the writer.
    pub rounds: u64,
    /// Rounds without a new champion.
    pub without_gain: u64,
    /// Their share; null without rounds.
    pub ratio: Option<f64>,
    /// Seconds of judging.
    pub judge_s: f64,
    /// Seconds of judging spent on candidates that were not crowned.
    pub judge_s_dropped: f64,
    /// Candidates that a process gate refused before any judging.
    pub refused: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Gain {
    /// Confirmed gain of the champion over the baseline.
    pub over_baseline: Option<Speedup>,
    /// Factor per round: the geometric mean over the writer's rounds.
    pub per_round: Option<f64>,
    /// Factor per US dollar; null where nothing was paid.
    pub per_dollar: Option<f64>,
    /// Factor per hour of wall time.
    pub per_hour: Option<f64>,
    /// Money spent on models, in US dollars.
    pub dollars: f64,
}

/// Predicted against measured gains.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Candidates with both.
    pub pairs: u64,
    /// Median factor by which a prediction was off, either way; 1 is exact.
    pub median_factor: Option<f64>,
    /// Median of predicted over measured; above 1 is over-promising.
    pub bias: Option<f64>,
    /// Rank correlation (Spearman); null with fewer than three pairs or where one side never varies.
    pub rank_correlation: Option<f64>,
}

/// What reviewers did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Reviews {
    /// Reviews held.
    pub held: u64,
    /// Objections.
    pub vetoes: u64,
    /// Without a valid verdict.
    pub not_passed: u64,
    /// Findings raised.
    pub findings: u64,
    /// Findings that were raised before.
    pub repeated: u64,
}

/// A step of the plan and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedStep {
    /// The step.
    pub step: String,
    /// By the record.
    pub state: StepState,
}

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Postmortem {
    /// The run.
    pub run: String,
    /// Its instance.
    pub instance: String,
    /// What hardware the figures speak of.
    pub scope: &'static str,
    /// The sentence that goes with the scope.
    pub scope_note: &'static str,
    /// How it ended; null while it has not.
    pub outcome: Option<&'static str>,
    /// Why no further candidate was begun.
    pub reason: Option<String>,
    /// Wall time in seconds, without waiting for people and without the time between sittings.
    pub wall_s: f64,
    /// Seconds spent waiting.
    pub waiting_s: f64,
    /// Claims against verdicts.
    pub claims: Claims,
    /// What was spent without a gain.
    pub waste: Waste,
    /// What came of it.
    pub gain: Gain,
    /// Predicted against measured gains.
    pub prediction: Prediction,
    /// What reviewers did.
    pub reviews: Reviews,
    /// Process gates that fired, by code.
    pub process: BTreeMap<String, u64>,
    /// Seconds by kind of work, as far as records time them.
    pub time_s: BTreeMap<&'static str, f64>,
    /// The plan's steps.
    pub plan: Vec<PlannedStep>,
}

impl Postmortem {
    /// Reads a run's record and computes its figures.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn of(run: &Path) -> Result<Self, RunError> {
        let history = History::load(run)?;
        let memory = crate::resume::remember(run)?;
        let mut time_s: BTreeMap<&'static str, f64> = BTreeMap::new();
        for record in read_records(run)? {
            let seq = record.seq;
            let entry = record
                .entry()
                .map_err(|source| ksmith_ledger::ReadError::Body { seq, source })?;
            if let Some((kind, seconds)) = timed(&entry) {
                *time_s.entry(kind).or_default() += seconds;
            }
        }
        let mut process: BTreeMap<String, u64> = BTreeMap::new();
        for (_, gate) in &history.process {
            *process.entry(gate.code.clone()).or_default() += 1;
        }
        let unproved = history
            .process
            .iter()
            .filter(|(_, gate)| !gate.refused && gate.candidate.is_some())
            .count() as u64;
        let wall_s = history
            .closed
            .as_ref()
            .map_or(memory.spent.wall_s, |closed| closed.wall_s);
        let waste = waste(&memory);
        let steps = history.plan().map_or(&[][..], |plan| plan.steps.as_slice());
        Ok(Self {
            run: history.opened.run.clone(),
            instance: history.opened.instance.clone(),
            scope: history.opened.scope.name(),
            scope_note: history.opened.scope.sentence(),
            outcome: history.closed.as_ref().map(|closed| closed.outcome.name()),
            reason: history.closed.as_ref().map(|closed| closed.reason.clone()),
            wall_s,
            waiting_s: history.waited_s,
            claims: claims(&memory, unproved),
            gain: gain(&memory, wall_s, waste.rounds),
            waste,
            prediction: prediction(&memory),
            reviews: reviews(&history),
            process,
            time_s,
            plan: steps
                .iter()
                .zip(states(steps, &memory))
                .map(|(step, state)| PlannedStep {
                    step: step.step.clone(),
                    state,
                })
                .collect(),
        })
    }
}

/// What a record's work was, and how long it took.
fn timed(entry: &Entry) -> Option<(&'static str, f64)> {
    let gates = |gates: &[ksmith_ledger::GateResult]| gates.iter().map(|gate| gate.ms).sum::<f64>() / 1e3;
    match entry {
        Entry::Audited(audited) => Some(("audit", audited.ms / 1e3)),
        Entry::Screened(screened) => Some(("screen", screened.ms / 1e3)),
        Entry::Shortlisted(shortlisted) => Some(("shortlist", shortlisted.ms / 1e3)),
        Entry::Decided(decided) => Some(("score", gates(&decided.verdict.gates))),
        Entry::Reviewed(reviewed) => {
            let attempts = reviewed.detail.iter().flat_map(|detail| &detail.attempts);
            Some(("review", attempts.map(|attempt| attempt.ms).sum::<f64>() / 1e3))
        }
        Entry::Profiled(profiled) => Some(("profile", profiled.ms / 1e3)),
        Entry::AgentCall(call) => Some(("agent", call.ms / 1e3)),
        Entry::ModelCall(call) => Some(("model", call.ms / 1e3)),
        Entry::ToolCall(call) => Some(("tool", call.ms / 1e3)),
        Entry::Waited(waited) => Some(("waiting", waited.seconds)),
        _ => None,
    }
}

fn claims(memory: &Memory, unproved: u64) -> Claims {
    let mut claims = Claims {
        unproved,
        ..Claims::default()
    };
    for candidate in &memory.candidates {
        let predicts = candidate.proposed.predicted.is_some_and(|gain| gain > 1.0);
        let has_outcome = candidate.decided.is_some() || candidate.left_in_screening();
        if candidate.proposed.role == Role::Candidate && predicts && has_outcome {
            claims.predicted += 1;
            claims.accepted += u64::from(candidate.is_accepted());
        }
    }
    claims.acceptance = share(claims.accepted as f64, claims.predicted as f64);
    claims
}

fn waste(memory: &Memory) -> Waste {
    let mut rounds: BTreeMap<u32, bool> = BTreeMap::new();
    let mut waste = Waste::default();
    for candidate in &memory.candidates {
        let proposed = &candidate.proposed;
        if proposed.role != Role::Candidate {
            continue;
        }
        let is_crowned = memory.is_promoted(&proposed.candidate);
        *rounds.entry(proposed.round).or_default() |= is_crowned;
        waste.refused += u64::from(candidate.refused.is_some());
        let screened = candidate.screened.as_ref().map_or(0.0, |screened| screened.ms);
        let scored = candidate
            .decided
            .iter()
            .flat_map(|decided| &decided.verdict.gates);
        let seconds = (screened + scored.map(|gate| gate.ms).sum::<f64>()) / 1e3;
        waste.judge_s += seconds;
        if !is_crowned {
            waste.judge_s_dropped += seconds;
        }
    }
    waste.rounds = rounds.len() as u64;
    waste.without_gain = rounds.values().filter(|gained| !**gained).count() as u64;
    waste.ratio = share(waste.without_gain as f64, waste.rounds as f64);
    waste
}

fn gain(memory: &Memory, wall_s: f64, rounds: u64) -> Gain {
    let over_baseline = memory.over_baseline();
    // A gain of nothing is the factor 1: the lower bound is what was shown.
    let shown = over_baseline.map_or(1.0, |gain| gain.lower.max(f64::MIN_POSITIVE));
    let per = |units: f64| {
        (units > 0.0)
            .then(|| shown.powf(1.0 / units))
            .filter(|factor| factor.is_finite())
    };
    Gain {
        over_baseline,
        per_round: per(rounds as f64),
        per_dollar: per(memory.spent.cost_usd),
        per_hour: per(wall_s / 3600.0),
        dollars: memory.spent.cost_usd,
    }
}

fn prediction(memory: &Memory) -> Prediction {
    let pairs: Vec<(f64, f64)> = memory
        .candidates
        .iter()
        .filter(|candidate| candidate.proposed.role == Role::Candidate)
        .filter_map(|candidate| {
            let verdict = &candidate.decided.as_ref()?.verdict;
            let is_statement = match verdict.verdict {
                Decision::Accept | Decision::Revise | Decision::Reject => true,
                Decision::Ambiguous | Decision::Error => false,
            };
            let measured = verdict.speedup.filter(|_| is_statement)?.point;
            let predicted = candidate.proposed.predicted?;
            (predicted > 0.0 && measured > 0.0).then_some((predicted, measured))
        })
        .collect();
    let ratios: Vec<f64> = pairs
        .iter()
        .map(|(predicted, measured)| (predicted / measured).ln())
        .collect();
    let sizes: Vec<f64> = ratios.iter().map(|ratio| ratio.abs()).collect();
    Prediction {
        pairs: pairs.len() as u64,
        median_factor: median(&sizes).map(f64::exp),
        bias: median(&ratios).map(f64::exp),
        rank_correlation: spearman(&pairs),
    }
}

fn reviews(history: &History) -> Reviews {
    let mut reviews = Reviews::default();
    for detail in history
        .reviews
        .iter()
        .filter_map(|(_, review)| review.detail.as_ref())
    {
        reviews.held += 1;
        reviews.vetoes += u64::from(detail.outcome == "veto");
        reviews.not_passed += u64::from(detail.outcome == "not-passed");
        reviews.findings += detail.raised.len() as u64;
        reviews.repeated += detail.raised.iter().filter(|raised| raised.repeated).count() as u64;
    }
    reviews
}
