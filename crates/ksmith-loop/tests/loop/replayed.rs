//! The built-in offline agent under the real loop, with recorded measurements instead of a judge: the same seed gives
//! the same candidates, byte by byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ksmith_ledger::{History, Role};
use ksmith_loop::{Silent, run_with};
use ksmith_search::Cache;

use crate::scripted::{Home, Script, Speeds};

/// Recorded times of the structure `logsumexp-chunks`, found by the title line of a source.
fn recorded() -> Speeds {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ksmith-search/testdata/spaces.jsonl");
    let times: BTreeMap<String, Option<f64>> = Cache::read(&path)
        .unwrap()
        .entries()
        .iter()
        .filter(|entry| entry.structure == "logsumexp-chunks")
        .map(|entry| (format!("/* {}: {} */", entry.structure, entry.config), entry.time))
        .collect();
    assert!(times.len() > 48, "a space that is not simply measured whole");
    Arc::new(move |text: &str| {
        let title = text.lines().next().unwrap_or_default();
        match times.get(title) {
            Some(time) => time.map(|time| 1.0 / time),
            // Another processor has configurations that were not recorded; rewrites and flags gain nothing.
            None => Some(if title.starts_with("/* logsumexp-chunks") {
                1.1
            } else {
                1.0
            }),
        }
    })
}

/// Direction, hypothesis and bytes of every candidate in order, and which became champion.
fn sequence(seed: u64) -> (Vec<(String, String, String)>, Option<String>) {
    let home = Home::of("logsumexp");
    let mut script = Script::new(&[]);
    script.recorded = Some(recorded());
    let mut options = home.options();
    options.types = vec!["T=f32".parse().unwrap()];
    options.seed = seed;
    options.candidates = Some(12);
    let outcome = run_with(&options, &script, &mut Silent).unwrap();
    let dir = &outcome.instances[0].dir;
    let history = History::load(dir).unwrap();
    let candidates = history
        .candidates
        .iter()
        .filter(|candidate| candidate.proposed.role == Role::Candidate)
        .map(|candidate| {
            let proposed = &candidate.proposed;
            (
                proposed.direction.clone(),
                proposed.hypothesis.clone(),
                proposed.digest.to_string(),
            )
        })
        .collect();
    (
        candidates,
        history.champion().map(|champion| champion.id().to_owned()),
    )
}

#[test]
fn the_same_seed_gives_the_same_candidates_byte_by_byte_on_two_runs() {
    let first = sequence(3);
    assert!(first.0.len() >= 24, "{} candidates", first.0.len());
    assert_eq!(first, sequence(3));
    assert_ne!(first.0, sequence(4).0, "another seed draws other lots");
}
