//! The shortlist: what is left of the quick pass when the rounds end, measured once more before the last scoring.
//!
//! A quick figure is the least of a few calls at one shape, and each round scores only what looked best in it. So the
//! truly best may stand second in its round. Pure functions of the memory: what is scored is decided by code alone.

use ksmith_ledger::{Role, Scope, Shortlisted};

use crate::memory::{Candidacy, Memory};
use crate::step::{SCORINGS, is_measured};
use crate::{Mechanism, Mechanisms};

/// Most candidates on the list.
pub(crate) const SIZE: usize = 8;
/// What measuring them is expected to take, in seconds: nine workers, then rounds for three and a half seconds.
pub(crate) const SECONDS: f64 = 5.0;
/// Below this gain over the champion by the quick pass a candidate is not on the list: the quick pass is off by some
/// percent, and by more where champions have changed between.
const NEAR: f64 = 0.9;
/// Below this median gain a full scoring is not worth its time: half the least gain that a verdict may claim.
const WORTH_SCORING: f64 = 1.005;

/// Candidates that went on from the quick pass and were never scored, with what it makes of them over the champion of
/// now; best first.
pub(crate) fn pick(memory: &Memory) -> Vec<(&Candidacy, f64)> {
    // Quick figures are over the champion of their round, which changes at the round's end.
    let mut candidates: Vec<&Candidacy> = memory.candidates.iter().collect();
    candidates.sort_by_key(|candidate| {
        let id = &candidate.proposed.candidate;
        (candidate.proposed.round, memory.is_promoted(id))
    });
    let mut champion = 1.0;
    let mut left: Vec<(&Candidacy, f64)> = Vec::new();
    for candidate in candidates {
        let is_new = candidate.decided.is_none() && candidate.refused.is_none();
        let is_written = match candidate.proposed.role {
            Role::Candidate | Role::Seed => true,
            Role::FlagControl | Role::Baseline => false,
        };
        if let (Some(gain), true) = (candidate.quick_gain(), is_new && is_written) {
            left.push((candidate, champion * gain));
        }
        if memory.is_promoted(&candidate.proposed.candidate)
            && let Some(gain) = candidate
                .decided
                .as_ref()
                .and_then(|decided| decided.verdict.speedup)
        {
            champion *= gain.point;
        }
    }
    for (_, gain) in &mut left {
        *gain /= champion;
    }
    left.retain(|(_, gain)| *gain >= NEAR);
    left.sort_by(|a, b| b.1.total_cmp(&a.1));
    left.truncate(SIZE);
    left
}

/// Whether there is something to measure before the end. On a device the quick pass is precise enough.
pub(crate) fn is_due(memory: &Memory, on: &Mechanisms) -> bool {
    let is_device = memory
        .opened
        .as_ref()
        .is_some_and(|opened| opened.scope == Scope::Cuda);
    on.has(Mechanism::Shortlist)
        && !is_device
        && memory.shortlist.is_none()
        && memory.spent.candidates < memory.budget().candidates
        && !pick(memory).is_empty()
}

/// The one to score: the fastest of the list that gains, until one was measured. A failed gate says nothing of the
/// others.
pub(crate) fn next<'a>(memory: &'a Memory, list: &Shortlisted) -> Option<&'a Candidacy> {
    let mut fastest: Vec<(f64, &Candidacy)> = list
        .entries
        .iter()
        .filter_map(|entry| Some((entry.ratio?, memory.candidate(&entry.candidate)?)))
        .filter(|(ratio, _)| *ratio >= WORTH_SCORING)
        .collect();
    fastest.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, candidate) in fastest {
        if candidate.decided.is_none() || candidate.is_unstated() && candidate.scorings < SCORINGS {
            return Some(candidate);
        }
        if is_measured(candidate) {
            return None;
        }
    }
    None
}
