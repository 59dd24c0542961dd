//! Out-of-sample scores of the strategy on recorded spaces.
//!
//! Three things could flatter a score: settings of the strategy chosen on the spaces they are scored on, priors written
//! while looking at the machine, and earlier measurements. So each space is scored with settings chosen on all other
//! spaces, without any prior, and with what the other spaces of its family would have taught.

use crate::cache::CacheEntry;
use crate::prior::Weighing;
use crate::replay::{Replay, ReplaySpace};
use crate::strategy::Settings;

/// What the settings are chosen from.
const RESTART_SHARES: [usize; 4] = [2, 3, 4, 8];
const SHRINKAGES: [f64; 3] = [0.5, 1.0, 3.0];
const FAILURES: [f64; 2] = [0.5, 1.0];

/// Scores of one space; each is P(t) as in [`crate::StrategyScore::score`].
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    /// Instance and structure.
    pub name: String,
    /// Number of configurations.
    pub configs: usize,
    /// With the settings that are best on all other spaces.
    pub score: f64,
    /// Best time found over the optimum at the end, with the same settings.
    pub ratio: f64,
    /// The same settings where every configuration has the same prior.
    pub without_prior: f64,
    /// The same settings, begun with what the other spaces of the family were best at.
    pub with_transfer: f64,
    /// The settings, in words.
    pub settings: String,
}

/// Leave-one-space-out validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// One per space, in the spaces' order.
    pub spaces: Vec<HeldOut>,
}

impl Validation {
    /// Scores every space of `entries` that has at least `least` configurations and two different times, with
    /// `evaluations` in batches of `batch`, averaged over `seeds`.
    pub fn leave_one_out(
        entries: &[CacheEntry],
        least: usize,
        evaluations: usize,
        batch: usize,
        seeds: &[u64],
    ) -> Self {
        let spaces = ReplaySpace::from_entries(entries, least);
        let score = |space: &ReplaySpace, settings: Settings, transfer: &[CacheEntry]| {
            let mut sum = (0.0, 0.0);
            for seed in seeds {
                let replay = Replay {
                    evaluations,
                    batch,
                    seed: *seed,
                };
                let found = replay.score_with(space, settings, transfer)?;
                sum.0 += found.score;
                sum.1 += found.ratio;
            }
            let count = seeds.len().max(1) as f64;
            Some((sum.0 / count, sum.1 / count))
        };
        let grid = grid();
        let telling: Vec<&ReplaySpace> = spaces
            .iter()
            .filter(|space| score(space, Settings::default(), &[]).is_some())
            .collect();
        // One row of scores per setting, so that leaving one space out is a sum.
        let table: Vec<Vec<f64>> = grid
            .iter()
            .map(|settings| {
                telling
                    .iter()
                    .map(|space| score(space, *settings, &[]).map_or(0.0, |found| found.0))
                    .collect()
            })
            .collect();
        let held_out = telling.iter().enumerate().filter_map(|(left_out, space)| {
            let others = |row: &[f64]| row.iter().sum::<f64>() - row[left_out];
            let (best, _) = table
                .iter()
                .enumerate()
                .max_by(|(_, a), (_, b)| others(a).total_cmp(&others(b)))?;
            let settings = grid[best];
            let (p, ratio) = score(space, settings, &[])?;
            let others: Vec<CacheEntry> = entries
                .iter()
                .filter(|entry| entry.instance != space.instance)
                .cloned()
                .collect();
            Some(HeldOut {
                name: space.name.clone(),
                configs: space.len(),
                score: p,
                ratio,
                without_prior: score(&space.without_prior(), settings, &[])?.0,
                with_transfer: score(space, settings, &others)?.0,
                settings: format!(
                    "a restart in {}, shrinkage {}, failure {}",
                    settings.restart_share, settings.weighing.shrinkage, settings.weighing.failure
                ),
            })
        });
        Self {
            spaces: held_out.collect(),
        }
    }

    /// Mean of a column over the spaces.
    pub fn mean(&self, column: impl Fn(&HeldOut) -> f64) -> f64 {
        self.spaces.iter().map(column).sum::<f64>() / self.spaces.len().max(1) as f64
    }
}

fn grid() -> Vec<Settings> {
    let mut grid = Vec::new();
    for restart_share in RESTART_SHARES {
        for shrinkage in SHRINKAGES {
            for failure in FAILURES {
                grid.push(Settings {
                    restart_share,
                    weighing: Weighing { shrinkage, failure },
                });
            }
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A bowl over two knobs per instance, its lowest point at `(a, b)`.
    fn bowl(instance: &str, a: i64, b: i64) -> Vec<CacheEntry> {
        let mut entries = Vec::new();
        for x in 0..12i64 {
            for y in 0..12i64 {
                entries.push(CacheEntry {
                    schema: 2,
                    machine: "m".to_owned(),
                    family: "f".to_owned(),
                    instance: instance.to_owned(),
                    structure: "s".to_owned(),
                    axes: BTreeMap::new(),
                    config: format!("a={x} b={y}"),
                    prior: 1.0,
                    time: Some(0.1 + 0.02 * ((x - a).pow(2) + (y - b).pow(2)) as f64),
                    code: String::new(),
                });
            }
        }
        entries
    }

    #[test]
    fn a_neighbour_with_the_same_optimum_helps_and_the_space_itself_never_teaches() {
        let mut entries = bowl("one", 9, 3);
        entries.extend(bowl("two", 9, 3));
        let found = Validation::leave_one_out(&entries, 10, 40, 8, &[1, 2]);
        assert_eq!(found.spaces.len(), 2);
        for space in &found.spaces {
            assert!(space.with_transfer > 0.99, "{space:?}");
            assert!(space.score < space.with_transfer, "{space:?}");
            assert_eq!(space.score, space.without_prior, "the prior is flat anyway");
        }
        let alone = Validation::leave_one_out(&bowl("one", 9, 3), 10, 40, 8, &[1]);
        assert_eq!(alone.spaces[0].score, alone.spaces[0].with_transfer);
    }

    #[test]
    fn spaces_that_say_nothing_are_left_out() {
        let mut entries = bowl("one", 9, 3);
        for entry in &mut entries {
            entry.time = Some(0.1);
        }
        assert!(
            Validation::leave_one_out(&entries, 10, 40, 8, &[1])
                .spaces
                .is_empty()
        );
    }
}
