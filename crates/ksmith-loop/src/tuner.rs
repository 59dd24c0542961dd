//! The tuner cache: what a run measured of the offline agent's configurations, for later runs on this machine.
//!
//! It only orders what later runs try; no figure of it ever reaches a verdict.

use std::path::{Path, PathBuf};

use ksmith_ledger::{Decision, History, Role};
use ksmith_search::{Cache, CacheEntry, Config, mean_axes};
use ksmith_task::Instance;
use ksmith_task::contract::Backend;

/// Where the cache lies.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join(".ksmith").join("tuner.jsonl")
}

/// Appends what a closed run measured. Only ordering is at stake, so a cache that cannot be written is a note.
pub(crate) fn remember(
    history: &History,
    instance: &Instance,
    backend: Backend,
    path: &Path,
) -> Option<String> {
    entries(history, instance, backend)
        .iter()
        .find_map(|entry| Cache::append(path, entry).err())
        .map(|error| error.to_string())
}

fn entries(history: &History, instance: &Instance, backend: Backend) -> Vec<CacheEntry> {
    let opened = &history.opened;
    let axes = mean_axes(instance.workloads(backend).map(|workload| &workload.axes));
    let mut candidates: Vec<_> = history.candidates.iter().collect();
    // Figures are over the champion of their round, which changes at its end.
    candidates.sort_by_key(|candidate| (candidate.proposed.round, candidate.promoted.is_some()));
    let mut champion = 1.0;
    let mut entries = Vec::new();
    for candidate in candidates {
        let proposed = &candidate.proposed;
        let decided = candidate.decided.as_ref();
        let gain = decided
            .and_then(|decided| decided.verdict.speedup.map(|speedup| speedup.point))
            .or_else(|| {
                candidate
                    .screened
                    .as_ref()
                    .filter(|screened| screened.kept)?
                    .ratio
            })
            .filter(|gain| gain.is_finite() && *gain > 0.0);
        let failed = decided.is_some_and(|decided| match decided.verdict.verdict {
            Decision::Reject => decided.verdict.speedup.is_none(),
            Decision::Accept | Decision::Revise | Decision::Ambiguous | Decision::Error => false,
        });
        let time = gain.filter(|_| !failed).map(|gain| champion / gain);
        if let (Some(time), true) = (time, candidate.promoted.is_some()) {
            champion = time;
        }
        let label = proposed
            .hypothesis
            .trim_end()
            .strip_suffix(']')
            .and_then(|text| Some(&text[text.rfind('[')? + 1..]));
        let Some(config) = label.and_then(Config::parse) else {
            continue;
        };
        if proposed.role != Role::Candidate || candidate.code().is_none() && time.is_none() {
            continue;
        }
        entries.push(CacheEntry {
            schema: 2,
            machine: opened.device.to_string(),
            family: proposed.family.clone(),
            instance: opened.instance.clone(),
            structure: proposed.direction.clone(),
            axes: axes.clone(),
            config: config.to_string(),
            prior: proposed.predicted.map_or(1.0, |gain| champion / gain),
            time,
            code: candidate.code().unwrap_or("screen/passed").to_owned(),
        });
    }
    entries
}
