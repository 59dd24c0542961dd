//! What the record shows of a run's course: reviews held, reasons of drops, stalls, open questions.
//!
//! Pure functions of the memory, so that a resumed run reviews, replans and asks exactly what an unbroken one would.

use ksmith_agents::process::{LADDER, Rung};
use ksmith_agents::review::{Critique, Docket, Facts, Finding, HeldReview, Occasion, Weight, due};
use ksmith_ledger::{Asked, RaisedFinding, ReviewDetail, Reviewed, Role};

use crate::Memory;
use crate::memory::Candidacy;
use crate::step::Now;

/// Rounds in a row with one failure, after which a direction is closed.
const SAME_FAILURE: usize = 3;

/// The detail of a review on an occasion.
fn detail(reviewed: &Reviewed, occasion: Occasion) -> Option<&ReviewDetail> {
    reviewed
        .detail
        .as_deref()
        .filter(|detail| detail.occasion == occasion.name())
}

/// The review on which a candidate's crown rests: of these very files, or none.
pub(crate) fn crown_review<'a>(memory: &'a Memory, candidacy: &Candidacy) -> Option<&'a Reviewed> {
    let proposed = &candidacy.proposed;
    memory
        .reviews
        .iter()
        .rev()
        .map(|(_, reviewed)| reviewed)
        .find(|reviewed| {
            reviewed.candidate.as_deref() == Some(proposed.candidate.as_str())
                && detail(reviewed, Occasion::Crown).is_some_and(|detail| detail.source == proposed.digest)
        })
}

/// Whether a review keeps a candidate from being crowned.
pub(crate) fn is_barred(memory: &Memory, candidacy: &Candidacy) -> bool {
    crown_review(memory, candidacy).is_some_and(|reviewed| reviewed.veto)
}

/// Findings of the line of candidates that `candidacy` stands in: it and its ancestors since the last crown.
pub(crate) fn docket(memory: &Memory, candidacy: &Candidacy) -> Docket {
    let mut line: Vec<&Candidacy> = Vec::new();
    let mut next = candidacy.proposed.parents.first();
    while let Some(parent) = next.and_then(|id| memory.candidate(id)) {
        if memory.is_promoted(&parent.proposed.candidate) || line.len() >= memory.candidates.len() {
            break;
        }
        line.push(parent);
        next = parent.proposed.parents.first();
    }
    let mut docket = Docket::default();
    for ancestor in line.into_iter().rev() {
        if let Some(reviewed) = crown_review(memory, ancestor) {
            let raised = reviewed.detail.iter().flat_map(|detail| &detail.raised);
            docket.add(&raised.map(finding).collect::<Vec<_>>());
        }
    }
    docket
}

fn finding(raised: &RaisedFinding) -> Finding {
    Finding {
        key: raised.key.clone(),
        weight: if raised.blocking {
            Weight::Blocking
        } else {
            Weight::Advice
        },
        location: raised.location.clone(),
        text: raised.text.clone(),
        evidence: raised.evidence.clone(),
    }
}

/// Reviews of the course of the run.
fn held(memory: &Memory) -> Vec<HeldReview> {
    memory
        .reviews
        .iter()
        .filter_map(|(promotions, reviewed)| {
            let detail = reviewed.detail.as_deref()?;
            Some(HeldReview {
                occasion: Occasion::of(&detail.occasion)?,
                mark: detail.mark.clone(),
                is_before_last_gain: *promotions < memory.promotions.len(),
            })
        })
        .collect()
}

/// The occasion that calls for a review of the course now, with its mark.
pub(crate) fn review_due(memory: &Memory, now: Now) -> Option<(Occasion, String)> {
    let budget = memory.budget();
    let spent = &memory.spent;
    let share = |spent: f64, whole: f64| if whole > 0.0 { spent / whole } else { 0.0 };
    let shares = [
        share(spent.wall_s + now.since_record_s, budget.wall_s),
        share(spent.candidates as f64, budget.candidates as f64),
        share(spent.cost_usd, budget.cost_usd),
        share(spent.device_s, budget.device_s.unwrap_or_default()),
    ];
    let facts = Facts {
        drops: drops(memory),
        rounds_without_gain: memory.rounds_without_gain(None),
        plateau: LADDER.replan,
        spent: shares.into_iter().fold(0.0, f64::max),
        says_done: now.writer_says_done,
    };
    due(&facts, &held(memory))
}

/// Codes under which the latest candidates of the writer were dropped, oldest first, up to the last one that was kept.
fn drops(memory: &Memory) -> Vec<String> {
    let mut codes: Vec<String> = memory
        .candidates
        .iter()
        .rev()
        .filter(|candidate| candidate.proposed.role == Role::Candidate)
        // One that was never judged says nothing.
        .filter(|candidate| candidate.decided.is_some() || candidate.left_in_screening())
        .map_while(|candidate| candidate.dropped().map(str::to_owned))
        .collect();
    codes.reverse();
    codes
}

/// The rung that the run steps down to now, if any.
pub(crate) fn rung(memory: &Memory) -> Option<Rung> {
    let taken = memory
        .process
        .iter()
        .filter(|(promotions, _)| *promotions == memory.promotions.len())
        .filter_map(|(_, gate)| serde_json::from_value(gate.data.get("rung")?.clone()).ok())
        .max();
    LADDER.next(memory.rounds_without_gain(None), taken)
}

/// Directions that a process gate closed since the last gain.
pub(crate) fn closed(memory: &Memory) -> Vec<String> {
    memory
        .process
        .iter()
        .filter(|(promotions, _)| *promotions == memory.promotions.len())
        .filter_map(|(_, gate)| gate.data.get("closed")?.as_array())
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// Directions tried since the last gain.
pub(crate) fn tried_since_gain(memory: &Memory) -> Vec<String> {
    let last = memory
        .promotions
        .last()
        .and_then(|promoted| memory.candidate(&promoted.candidate))
        .map_or(0, |champion| champion.proposed.round);
    let mut directions: Vec<String> = Vec::new();
    for candidate in &memory.candidates {
        let proposed = &candidate.proposed;
        let counts = proposed.role == Role::Candidate && proposed.round > last;
        if counts && !directions.contains(&proposed.direction) {
            directions.push(proposed.direction.clone());
        }
    }
    directions
}

/// A direction of which every candidate of the last three rounds failed a gate with one code, and that code.
pub(crate) fn repeated_error(memory: &Memory) -> Option<(String, String)> {
    let last = memory.candidates.last()?;
    let direction = &last.proposed.direction;
    if last.proposed.role != Role::Candidate || closed(memory).contains(direction) {
        return None;
    }
    let mut rounds: Vec<(u32, Vec<Option<&str>>)> = Vec::new();
    for candidate in &memory.candidates {
        if candidate.proposed.role != Role::Candidate || candidate.proposed.direction != *direction {
            continue;
        }
        let code = failure(candidate);
        match rounds.last_mut() {
            Some((round, codes)) if *round == candidate.proposed.round => codes.push(code),
            Some(_) | None => rounds.push((candidate.proposed.round, vec![code])),
        }
    }
    let code = rounds.last()?.1.first().copied()??;
    let same = rounds
        .iter()
        .rev()
        .take_while(|(_, codes)| codes.iter().all(|found| *found == Some(code)))
        .count();
    (same >= SAME_FAILURE).then(|| (direction.clone(), code.to_owned()))
}

/// The code of a failure; being too slow is none.
fn failure(candidate: &Candidacy) -> Option<&str> {
    candidate.dropped().filter(|code| {
        !["gain/", "slow/", "regression/"]
            .iter()
            .any(|kind| code.starts_with(kind))
    })
}

/// The oldest question that is not settled, with the time at which it was asked.
pub(crate) fn open_question(memory: &Memory) -> Option<&(f64, Asked)> {
    memory
        .asked
        .iter()
        .find(|(_, asked)| !memory.answered.iter().any(|answered| answered.id == asked.id))
}

/// The mark of a plan's questions among all.
pub(crate) const PLAN_QUESTION: &str = "plan-";

/// Decisions of the plan that a person has taken, by key.
pub(crate) fn decided(memory: &Memory) -> impl Iterator<Item = (&str, &str)> {
    memory.answered.iter().filter_map(|answered| {
        Some((
            answered.id.strip_prefix(PLAN_QUESTION)?,
            answered.answer.as_deref()?,
        ))
    })
}

/// Critiques of draft and plan so far, in order.
pub(crate) fn critiques(memory: &Memory) -> Vec<Critique> {
    memory
        .reviews
        .iter()
        .filter_map(|(_, reviewed)| detail(reviewed, Occasion::Plan))
        .filter_map(|detail| serde_json::from_value(detail.data.clone()).ok())
        .collect()
}

/// Whether a question was left unanswered until its deadline: the run stops.
pub(crate) fn is_abandoned(memory: &Memory) -> bool {
    memory.answered.iter().any(|answered| answered.answer.is_none())
}

/// What reviewers have told the writer since the last gain: objections, and what to try next.
pub(crate) fn directives(memory: &Memory) -> Vec<String> {
    let mut notes = Vec::new();
    for (promotions, reviewed) in &memory.reviews {
        let Some(detail) = reviewed.detail.as_deref() else {
            continue;
        };
        if *promotions < memory.promotions.len() || detail.occasion == Occasion::Plan.name() {
            continue;
        }
        for raised in detail
            .raised
            .iter()
            .filter(|raised| raised.blocking && !raised.repeated)
        {
            notes.push(format!(
                "the reviewer objects to {}: {} at {}: {} ({})",
                reviewed.candidate.as_deref().unwrap_or("the course"),
                raised.key,
                plain(&raised.location),
                plain(&raised.text),
                plain(&raised.evidence)
            ));
        }
        if let Some(next) = &detail.next {
            notes.push(format!(
                "the reviewer directs: {} (direction {})",
                plain(&next.edit),
                plain(&next.direction)
            ));
        }
    }
    notes
}

/// Foreign text on one line and without quotes: notes name closed directions in quotes, and only we close them.
fn plain(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('`', "'")
}
