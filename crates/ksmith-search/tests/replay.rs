//! The strategy on recorded spaces, against uniform random choice.

use std::path::Path;

use ksmith_search::{Cache, CacheEntry, Replay, ReplaySpace, Validation};

/// Spaces of fewer configurations say little about a search.
const LEAST: usize = 24;

fn entries() -> Vec<CacheEntry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/spaces.jsonl");
    Cache::read(&path)
        .expect("the recorded spaces are read")
        .entries()
        .to_vec()
}

#[test]
fn the_search_beats_random_choice_on_every_recorded_space_and_by_far_on_average() {
    let spaces = ReplaySpace::from_entries(&entries(), LEAST);
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
        assert!(score.score > 0.0, "{}", lines.join("\n"));
        assert!(score.ratio < 1.1, "{}", lines.join("\n"));
    }
    let mean = sum / spaces.len() as f64;
    assert!(mean >= 0.6, "mean {mean:.2}\n{}", lines.join("\n"));
}

#[test]
fn it_does_so_with_settings_chosen_on_other_spaces() {
    let found = Validation::leave_one_out(&entries(), LEAST, 40, 8, &[11]);
    assert!(found.spaces.len() >= 8, "{found:?}");
    let mean = found.mean(|space| space.score);
    assert!(mean >= 0.6, "mean {mean:.2}\n{found:#?}");
}

#[test]
fn what_other_tasks_of_the_family_taught_does_not_harm_on_average() {
    let found = Validation::leave_one_out(&entries(), LEAST, 40, 8, &[11]);
    let (with, alone) = (
        found.mean(|space| space.with_transfer),
        found.mean(|space| space.score),
    );
    assert!(
        with >= alone - 0.02,
        "with transfer {with:.3}, without {alone:.3}"
    );
}

#[test]
fn a_replayed_search_is_the_same_twice() {
    for space in ReplaySpace::from_entries(&entries(), LEAST) {
        let replay = Replay {
            evaluations: 40,
            batch: 8,
            seed: 5,
        };
        assert_eq!(replay.sequence(&space), replay.sequence(&space));
    }
}
