//! Re-runs a search on recorded measurements, so that strategies are compared without measuring.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::cache::CacheEntry;
use crate::strategy::{Ranked, next};
use crate::{Config, Space};

/// A recorded space: every configuration with its prior and its measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySpace {
    /// Instance and structure.
    pub name: String,
    space: Space,
    priors: Vec<f64>,
    times: BTreeMap<Config, Option<f64>>,
}

/// Prior and measured time by configuration.
type Measured = BTreeMap<Config, (f64, Option<f64>)>;

impl ReplaySpace {
    /// Groups cache entries by instance and structure; groups of fewer than `least` configurations are left out.
    pub fn from_entries(entries: &[CacheEntry], least: usize) -> Vec<Self> {
        let mut groups: BTreeMap<(String, String), Measured> = BTreeMap::new();
        for entry in entries {
            if let Some(config) = Config::parse(&entry.config) {
                groups
                    .entry((entry.instance.clone(), entry.structure.clone()))
                    .or_default()
                    .insert(config, (entry.prior, entry.time));
            }
        }
        groups
            .into_iter()
            .filter(|(_, group)| group.len() >= least)
            .map(|((instance, structure), group)| Self {
                name: format!("{instance} {structure}"),
                space: Space {
                    configs: group.keys().cloned().collect(),
                },
                priors: group.values().map(|(prior, _)| *prior).collect(),
                times: group
                    .into_iter()
                    .map(|(config, (_, time))| (config, time))
                    .collect(),
            })
            .collect()
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

/// Random searches that the expectation of random choice is averaged over.
const RANDOM_RUNS: u64 = 200;

impl Replay {
    /// The order in which the strategy tries a recorded space.
    pub fn sequence(&self, space: &ReplaySpace) -> Vec<Config> {
        let ranked = Ranked {
            space: &space.space,
            priors: space.priors.clone(),
        };
        let mut tried = BTreeMap::new();
        let mut order = Vec::new();
        while order.len() < self.evaluations {
            let wanted = self.batch.clamp(1, self.evaluations - order.len());
            let configs = next(&ranked, &tried, wanted, self.seed);
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
        let steps = self.evaluations.min(space.len());
        let optimum = space.optimum();
        let worst = space.worst();
        if steps == 0 || !optimum.is_finite() || worst <= optimum {
            return None;
        }
        let order = self.sequence(space);
        let ours = best_so_far(space, &order, steps, worst);
        let mut random = vec![0.0; steps];
        for run in 0..RANDOM_RUNS {
            let order = shuffled(space, self.seed ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for (sum, best) in random.iter_mut().zip(best_so_far(space, &order, steps, worst)) {
                *sum += best / RANDOM_RUNS as f64;
            }
        }
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

fn shuffled(space: &ReplaySpace, seed: u64) -> Vec<Config> {
    let mut configs = space.space.configs.clone();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for last in (1..configs.len()).rev() {
        configs.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
    configs
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
                    schema: 1,
                    machine: "m".to_owned(),
                    family: "f".to_owned(),
                    instance: "i".to_owned(),
                    structure: "s".to_owned(),
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
}
