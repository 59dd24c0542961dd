//! What a run teaches, and that it counts only while the run shows it.

use ksmith_ledger::History;
use ksmith_loop::{Silent, run_with};
use ksmith_lore::{EvidenceState, Kind, Lore, Merged, Query, distil, recall};

use crate::scripted::{Home, Script, TWO};

#[test]
fn a_champion_becomes_an_observation_that_is_struck_when_its_record_is_gone() {
    let home = Home::new();
    let outcome = run_with(&home.options(), &Script::new(TWO), &mut Silent).unwrap();
    let run = &outcome.instances[0].dir;
    let history = History::load(run).unwrap();
    let taught = distil(&history);
    assert_eq!(taught.len(), 2);
    assert!(
        taught
            .iter()
            .all(|entry| entry.kind == Kind::Observation && entry.defects().is_empty())
    );
    let mut lore = Lore::open(home.folder.path()).unwrap();
    for entry in &taught {
        assert_eq!(lore.add(entry.clone()).unwrap(), Merged::Added);
        assert_eq!(lore.add(entry.clone()).unwrap(), Merged::Known);
    }
    let query = Query {
        text: "vector softmax".into(),
        scope: taught[0].scope.clone(),
        ..Query::default()
    };
    let found = recall(&lore, &query);
    let hit = &found.hits[0];
    assert_eq!((hit.effect.unwrap().point, hit.is_exact), (2.0, true));
    assert_eq!(hit.evidence, [EvidenceState::Shown]);
    // Somebody rewrites a line of the record: a damaged record shows nothing.
    let ledger = run.join("ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, text.replace("speed 5.0", "speed 9.0")).unwrap();
    let damaged = recall(&lore, &query);
    assert_eq!((damaged.hits.len(), damaged.not_served > 0), (0, true));
}

#[test]
fn a_run_that_is_not_closed_teaches_nothing() {
    let home = Home::new();
    let outcome = run_with(&home.options(), &Script::new(TWO), &mut Silent).unwrap();
    let mut history = History::load(&outcome.instances[0].dir).unwrap();
    history.closed = None;
    assert!(distil(&history).is_empty());
}
