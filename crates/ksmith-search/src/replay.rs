//! Re-runs a search on recorded measurements, so that strategies are compared without measuring.

use std::collections::BTreeMap;

use crate::cache::CacheEntry;
use crate::strategy::{Ranked, Settings, next_with_seeds};
use crate::transfer::Target;
use crate::{Config, Space};

/// A recorded space: every configuration with its prior and its measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySpace {
    /// Instance and structure.
    pub name: String,
    pub(crate) instance: String,
    family: String,
    structure: String,
    axes: BTreeMap<String, f64>,
    space: Space,
    priors: Vec<f64>,
    times: BTreeMap<Config, Option<f64>>,
}

/// Entries of one space by configuration; a later measurement replaces an earlier one.
type Measured<'a> = BTreeMap<Config, &'a CacheEntry>;

impl ReplaySpace {
    /// Groups cache entries by instance and structure; groups of fewer than `least` configurations are left out.
    pub fn from_entries(entries: &[CacheEntry], least: usize) -> Vec<Self> {
        let mut groups: BTreeMap<(&str, &str, &str), Measured<'_>> = BTreeMap::new();
        for entry in entries {
            if let Some(config) = Config::parse(&entry.config) {
                groups
                    .entry((&entry.instance, &entry.structure, &entry.machine))
                    .or_default()
                    .insert(config, entry);
            }
        }
        groups
            .into_iter()
            .filter(|(_, group)| group.len() >= least)
            .filter_map(|((instance, structure, machine), group)| {
                let first = *group.values().next()?;
                Some(Self {
                    name: format!("{instance} {structure} on {machine}"),
                    instance: instance.to_owned(),
                    family: first.family.clone(),
                    structure: structure.to_owned(),
                    axes: first.axes.clone(),
                    space: Space {
                        configs: group.keys().cloned().collect(),
                    },
                    priors: group.values().map(|entry| entry.prior).collect(),
                    times: group
                        .into_iter()
                        .map(|(config, entry)| (config, entry.time))
                        .collect(),
                })
            })
            .collect()
    }

    /// The same space where nothing is known beforehand.
    pub(crate) fn without_prior(&self) -> Self {
        Self {
            priors: vec![1.0; self.len()],
            ..self.clone()
        }
    }

    /// Number of configurations.
    pub fn len(&self) -> usize {
        self.space.configs.len()
    }

    /// Whether it has no configurations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn optimum(&self) -> f64 {
        self.times
            .values()
            .flatten()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }

    fn worst(&self) -> f64 {
        self.times.values().flatten().copied().fold(0.0, f64::max)
    }
}

/// How a strategy did on a recorded space.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyScore {
    /// The space.
    pub name: String,
    /// Its number of configurations.
    pub configs: usize,
    /// Mean over the first evaluations of (random − best) / (random − optimum): 0 is uniform random choice, 1 is the
    /// optimum at once.
    pub score: f64,
    /// Best time found over the optimum at the end.
    pub ratio: f64,
}

/// A replay of the agent's own strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// Evaluations that a search may use.
    pub evaluations: usize,
    /// Configurations per round.
    pub batch: usize,
    /// Seed of the search.
    pub seed: u64,
}

impl Replay {
    /// The order in which the strategy tries a recorded space.
    pub fn sequence(&self, space: &ReplaySpace) -> Vec<Config> {
        self.sequence_with(space, Settings::default(), &[])
    }

    fn sequence_with(&self, space: &ReplaySpace, settings: Settings, earlier: &[CacheEntry]) -> Vec<Config> {
        let seeds = Target {
            family: &space.family,
            structure: &space.structure,
            instance: &space.instance,
            axes: &space.axes,
            space: &space.space,
            priors: &space.priors,
        }
        .seeds(earlier);
        let ranked = Ranked {
            space: &space.space,
            priors: space.priors.clone(),
        };
        let mut tried = BTreeMap::new();
        let mut order = Vec::new();
        while order.len() < self.evaluations {
            let wanted = self.batch.clamp(1, self.evaluations - order.len());
            let configs = next_with_seeds(&ranked, &tried, &seeds, wanted, self.seed, settings);
            if configs.is_empty() {
                break;
            }
            for config in configs {
                tried.insert(config.clone(), space.times.get(&config).copied().flatten());
                order.push(config);
            }
        }
        order
    }

    /// Scores the strategy against uniform random choice. `None` where the space has no two different times.
    pub fn score(&self, space: &ReplaySpace) -> Option<StrategyScore> {
        self.score_with(space, Settings::default(), &[])
    }

    /// The same with other settings and with what `earlier` measurements teach.
    pub(crate) fn score_with(
        &self,
        space: &ReplaySpace,
        settings: Settings,
        earlier: &[CacheEntry],
    ) -> Option<StrategyScore> {
        let steps = self.evaluations.min(space.len());
        let optimum = space.optimum();
        let worst = space.worst();
        if steps == 0 || !optimum.is_finite() || worst <= optimum {
            return None;
        }
        let order = self.sequence_with(space, settings, earlier);
        let ours = best_so_far(space, &order, steps, worst);
        let random = best_of_random(space, steps, worst);
        // Once random choice has found the optimum as well, a step says nothing.
        let telling: Vec<f64> = random
            .iter()
            .zip(&ours)
            .filter(|(random, _)| **random > optimum * 1.001)
            .map(|(random, ours)| (random - ours) / (random - optimum))
            .collect();
        let score = telling.iter().sum::<f64>() / telling.len().max(1) as f64;
        Some(StrategyScore {
            name: space.name.clone(),
            configs: space.len(),
            score,
            ratio: ours.last().copied().unwrap_or(worst) / optimum,
        })
    }
}

fn best_so_far(space: &ReplaySpace, order: &[Config], steps: usize, worst: f64) -> Vec<f64> {
    let mut best = worst;
    let mut out: Vec<f64> = order
        .iter()
        .take(steps)
        .map(|config| {
            best = space
                .times
                .get(config)
                .copied()
                .flatten()
                .map_or(best, |time| best.min(time));
            best
        })
        .collect();
    out.resize(steps, best);
    out
}

/// The expected best time of uniform random choice without repetition after each of `steps` evaluations.
///
/// With the times in rising order, the best of t draws out of n is the r-th (from 0) with probability
/// C(n - 1 - r, t - 1) / C(n, t). A failed configuration counts as the slowest.
fn best_of_random(space: &ReplaySpace, steps: usize, worst: f64) -> Vec<f64> {
    let mut times: Vec<f64> = space.times.values().map(|time| time.unwrap_or(worst)).collect();
    times.sort_by(f64::total_cmp);
    let n = times.len();
    (1..=steps)
        .map(|drawn| {
            let mut probability = drawn as f64 / n as f64;
            let mut expected = 0.0;
            for (rank, time) in times.iter().take(n + 1 - drawn).enumerate() {
                expected += probability * time;
                probability *= (n - rank - drawn) as f64 / (n - 1 - rank).max(1) as f64;
            }
            expected
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(prior_is_good: bool) -> Vec<CacheEntry> {
        let mut entries = Vec::new();
        for a in 0..20i64 {
            for b in 0..10i64 {
                let time = 0.1 + 0.01 * ((a - 13).abs() + (b - 4).abs()) as f64;
                entries.push(CacheEntry {
                    schema: 2,
                    machine: "m".to_owned(),
                    family: "f".to_owned(),
                    instance: "i".to_owned(),
                    structure: "s".to_owned(),
                    axes: BTreeMap::new(),
                    config: format!("a={a} b={b}"),
                    prior: if prior_is_good { time } else { 1.0 },
                    time: (a != 3).then_some(time),
                    code: String::new(),
                });
            }
        }
        entries
    }

    #[test]
    fn a_perfect_prior_scores_one() {
        let spaces = ReplaySpace::from_entries(&recorded(true), 10);
        let score = Replay {
            evaluations: 40,
            batch: 8,
            seed: 1,
        }
        .score(&spaces[0])
        .expect("a score");
        assert_eq!((score.configs, score.score, score.ratio), (200, 1.0, 1.0));
    }

    #[test]
    fn moves_beat_random_choice_even_without_a_prior() {
        let spaces = ReplaySpace::from_entries(&recorded(false), 10);
        let score = Replay {
            evaluations: 60,
            batch: 8,
            seed: 1,
        }
        .score(&spaces[0])
        .expect("a score");
        assert!(score.score > 0.2, "{score:?}");
        assert!(score.ratio < 1.05, "{score:?}");
    }

    #[test]
    fn a_replay_repeats_itself() {
        let spaces = ReplaySpace::from_entries(&recorded(false), 10);
        let replay = Replay {
            evaluations: 60,
            batch: 8,
            seed: 1,
        };
        assert_eq!(replay.sequence(&spaces[0]), replay.sequence(&spaces[0]));
    }

    #[test]
    fn random_choice_is_expected_to_find_what_counting_says() {
        let mut entries = recorded(true);
        entries.truncate(3);
        for (entry, time) in entries.iter_mut().zip([1.0, 2.0, 4.0]) {
            entry.time = Some(time);
        }
        let spaces = ReplaySpace::from_entries(&entries, 1);
        let found = best_of_random(&spaces[0], 3, 4.0);
        // One draw: (1 + 2 + 4) / 3. Two: {1,2}, {1,4}, {2,4}. Three: all.
        for (found, want) in found.iter().zip([7.0 / 3.0, 4.0 / 3.0, 1.0]) {
            assert!((found - want).abs() < 1e-12, "{found} {want}");
        }
    }
}
