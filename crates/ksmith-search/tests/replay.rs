//! The strategy on recorded spaces, against uniform random choice.

use std::path::Path;

use ksmith_search::{Cache, Replay, ReplaySpace};

fn spaces() -> Vec<ReplaySpace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/spaces.jsonl");
    let cache = Cache::read(&path).expect("the recorded spaces are read");
    ReplaySpace::from_entries(cache.entries(), 24)
}

#[test]
fn the_search_beats_random_choice_on_recorded_spaces() {
    let spaces = spaces();
    assert!(spaces.len() >= 8, "only {} spaces", spaces.len());
    let mut sum = 0.0;
    let mut lines = Vec::new();
    for space in &spaces {
        let replay = Replay {
            evaluations: 40,
            batch: 8,
            seed: 11,
        };
        let score = replay.score(space).expect("a space with different times");
        lines.push(format!(
            "{} ({}): P {:.2}, best {:.3} of the optimum",
            score.name, score.configs, score.score, score.ratio
        ));
        sum += score.score;
        assert!(score.ratio < 1.05, "{}", lines.join("\n"));
    }
    let mean = sum / spaces.len() as f64;
    assert!(mean >= 0.6, "mean {mean:.2}\n{}", lines.join("\n"));
}

#[test]
fn a_replayed_search_is_the_same_twice_and_differs_by_seed_only_where_lots_are_drawn() {
    for space in spaces() {
        let replay = Replay {
            evaluations: 40,
            batch: 8,
            seed: 5,
        };
        assert_eq!(replay.sequence(&space), replay.sequence(&space));
    }
}
