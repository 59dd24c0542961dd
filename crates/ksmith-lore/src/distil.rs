//! Entries from a run's record, by template: no model, no number that the record does not hold.
//!
//! A champion becomes an observation with its measured effect: the record shows *that* it is faster and not why, so it
//! is no technique until a person adds the mechanism. A direction that had its tries without a gain becomes an
//! observation of that.

use std::collections::BTreeMap;

use ksmith_ledger::{CandidateHistory, History, Role};

use crate::{Effect, Entry, Evidence, Kind, Scope, Source, Status};

/// Tries of a direction without a gain that are worth remembering: as many as close one.
const TRIES: usize = 5;

/// What a closed run teaches. A run that is not closed teaches nothing yet.
pub fn distil(history: &History) -> Vec<Entry> {
    if history.closed.is_none() {
        return Vec::new();
    }
    let mut entries: Vec<Entry> = history
        .candidates
        .iter()
        .filter(|candidate| candidate.promoted.is_some() && candidate.proposed.role == Role::Candidate)
        .filter_map(|candidate| gained(history, candidate))
        .collect();
    let mut directions: BTreeMap<&str, Vec<&CandidateHistory>> = BTreeMap::new();
    for candidate in &history.candidates {
        if candidate.proposed.role == Role::Candidate {
            directions
                .entry(&candidate.proposed.direction)
                .or_default()
                .push(candidate);
        }
    }
    for (direction, candidates) in directions {
        let has_gain = candidates.iter().any(|candidate| candidate.promoted.is_some());
        let judged: Vec<&CandidateHistory> = candidates
            .into_iter()
            .filter(|candidate| candidate.decided.is_some() && candidate.is_correct())
            .collect();
        if !has_gain && judged.len() >= TRIES {
            entries.push(fruitless(history, direction, &judged));
        }
    }
    entries
}

fn gained(history: &History, candidate: &CandidateHistory) -> Option<Entry> {
    let gain = candidate.decided.as_ref()?.verdict.speedup?;
    let evidence = evidence(history, candidate)?;
    let idea = line(&candidate.proposed.hypothesis);
    Some(Entry {
        title: idea.clone(),
        problem: format!("time of {}", history.opened.instance),
        action: format!("direction {}: {idea}", line(&candidate.proposed.direction)),
        effect: Some(Effect {
            point: gain.point,
            lower: gain.lower,
            upper: gain.upper,
        }),
        evidence: vec![evidence],
        ..blank(history, &["gain", &candidate.proposed.direction, &idea])
    })
}

fn fruitless(history: &History, direction: &str, judged: &[&CandidateHistory]) -> Entry {
    Entry {
        title: format!("{} brought nothing for {}", line(direction), history.opened.task),
        problem: format!("time of {}", history.opened.instance),
        action: format!(
            "{} correct candidates of direction {} were no faster",
            judged.len(),
            line(direction)
        ),
        would_retry_if: "another device, other sizes, or a champion of another structure".to_owned(),
        evidence: judged
            .iter()
            .filter_map(|candidate| evidence(history, candidate))
            .collect(),
        ..blank(history, &["fruitless", direction])
    }
}

/// An observation of this run's scope; its id is made of the task and `parts`.
fn blank(history: &History, parts: &[&str]) -> Entry {
    let opened = &history.opened;
    let family = history
        .candidates
        .iter()
        .map(|candidate| candidate.proposed.family.clone())
        .find(|family| !family.is_empty());
    let dtypes = opened
        .instance
        .split_once('[')
        .map(|(_, types)| types.trim_end_matches(']'))
        .into_iter()
        .flat_map(|types| types.split(','))
        .filter_map(|pick| Some(pick.split_once('=')?.1.trim().to_owned()))
        .collect();
    let id = std::iter::once(opened.task.as_str())
        .chain(parts.iter().copied())
        .map(slug)
        .collect::<Vec<_>>()
        .join("-");
    Entry {
        schema: 1,
        id: id
            .chars()
            .take(80)
            .collect::<String>()
            .trim_matches('-')
            .to_owned(),
        kind: Kind::Observation,
        status: Status::Active,
        title: String::new(),
        problem: String::new(),
        action: String::new(),
        mechanism: String::new(),
        would_retry_if: String::new(),
        tags: Vec::new(),
        source: Source::OwnRuns,
        scope: Scope {
            backends: vec![opened.scope.name().to_owned()],
            families: family.into_iter().collect(),
            operators: vec![opened.task.clone()],
            dtypes,
        },
        effect: None,
        evidence: Vec::new(),
    }
}

fn evidence(history: &History, candidate: &CandidateHistory) -> Option<Evidence> {
    Some(Evidence {
        run: history.opened.run.clone(),
        candidate: candidate.id().to_owned(),
        verdict: candidate.decided.as_ref()?.verdict_digest,
        device: history.opened.device_name.clone(),
    })
}

fn slug(text: &str) -> String {
    let words: Vec<String> = text
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.join("-")
}

/// A writer's text on one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
