//! Which configurations come next.
//!
//! A small space is measured in the prior's order until nothing is left. A large one starts with the prior's best and
//! its one-factor moves, then moves from the best measured so far, and keeps a part of each batch for restarts drawn
//! from the better half of what is left.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::prior::{Correction, Weighing};
use crate::{Config, Space};

/// At most this many configurations are simply all measured.
pub(crate) const EXHAUSTIVE: usize = 48;

/// What can be set about the strategy. The defaults are checked out of sample by [`crate::Validation`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settings {
    /// One of so many places of a batch is a restart.
    pub(crate) restart_share: usize,
    pub(crate) weighing: Weighing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            restart_share: 4,
            weighing: Weighing::default(),
        }
    }
}

/// Configurations of a space with their priors, as ratios of times to plain C.
#[derive(Debug)]
pub(crate) struct Ranked<'a> {
    pub(crate) space: &'a Space,
    pub(crate) priors: Vec<f64>,
}

/// The first batch: half of it what was best on similar tasks, then as [`next`] says. Later batches are [`next`]'s.
pub(crate) fn next_with_seeds(
    ranked: &Ranked<'_>,
    tried: &BTreeMap<Config, Option<f64>>,
    seeds: &[Config],
    wanted: usize,
    seed: u64,
    settings: Settings,
) -> Vec<Config> {
    let mut configs: Vec<Config> = if tried.is_empty() {
        seeds.iter().take(wanted.div_ceil(2)).cloned().collect()
    } else {
        Vec::new()
    };
    for config in next(ranked, tried, wanted, seed, settings) {
        if configs.len() < wanted && !configs.contains(&config) {
            configs.push(config);
        }
    }
    configs
}

/// Picks up to `wanted` configurations that were not tried, best first. `tried` maps a configuration to its time, or
/// to `None` where it failed.
pub(crate) fn next(
    ranked: &Ranked<'_>,
    tried: &BTreeMap<Config, Option<f64>>,
    wanted: usize,
    seed: u64,
    settings: Settings,
) -> Vec<Config> {
    let configs = &ranked.space.configs;
    let measured = configs.iter().zip(&ranked.priors).filter_map(|(config, prior)| {
        let time = *tried.get(config)?;
        Some((config, *prior, time))
    });
    let correction = Correction::fit(measured, settings.weighing);
    let score: Vec<f64> = configs
        .iter()
        .zip(&ranked.priors)
        .map(|(config, prior)| correction.apply(config, *prior))
        .collect();
    let mut open: Vec<usize> = (0..configs.len())
        .filter(|index| !tried.contains_key(&configs[*index]))
        .collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ (tried.len() as u64).rotate_left(32));
    // Ties are broken by lot: the manifest's order would walk along one knob.
    let lots: Vec<u64> = configs.iter().map(|_| random.next_u64()).collect();
    let small = configs.len() <= EXHAUSTIVE;
    open.sort_by(|a, b| {
        let lot = |index: usize| if small { index as u64 } else { lots[index] };
        score[*a].total_cmp(&score[*b]).then(lot(*a).cmp(&lot(*b)))
    });
    if small {
        return open
            .into_iter()
            .take(wanted)
            .map(|index| configs[index].clone())
            .collect();
    }

    let incumbent = tried
        .iter()
        .filter_map(|(config, time)| time.map(|time| (config, time)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(config, _)| config.clone())
        .or_else(|| open.first().map(|index| configs[*index].clone()));
    let Some(incumbent) = incumbent else {
        return Vec::new();
    };
    let mut picked: Vec<usize> = Vec::new();
    if tried.is_empty() {
        picked.extend(open.first());
    }
    let restarts = wanted / settings.restart_share.max(1);
    let moves = open
        .iter()
        .copied()
        .filter(|index| configs[*index].distance(&incumbent) == 1);
    picked.extend(moves.take(wanted.saturating_sub(restarts + picked.len())));

    let half = open.len().div_ceil(2);
    for _ in 0..restarts.saturating_mul(4) {
        if picked.len() >= wanted || half == 0 {
            break;
        }
        let index = open[(random.next_u64() % half as u64) as usize];
        if !picked.contains(&index) {
            picked.push(index);
        }
    }
    for index in open {
        if picked.len() >= wanted {
            break;
        }
        if !picked.contains(&index) {
            picked.push(index);
        }
    }
    picked
        .into_iter()
        .take(wanted)
        .map(|index| configs[index].clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(a: i64, b: i64) -> Space {
        let configs = (0..a)
            .flat_map(|a| (0..b).map(move |b| Config(vec![("a".to_owned(), a), ("b".to_owned(), b)])))
            .collect();
        Space { configs }
    }

    fn run(space: &Space, time: impl Fn(&Config) -> Option<f64>, rounds: usize, seed: u64) -> Vec<Config> {
        let ranked = Ranked {
            space,
            priors: vec![1.0; space.configs.len()],
        };
        let mut tried = BTreeMap::new();
        let mut order = Vec::new();
        for _ in 0..rounds {
            for config in next(&ranked, &tried, 8, seed, Settings::default()) {
                assert!(!tried.contains_key(&config), "{config} was proposed twice");
                tried.insert(config.clone(), time(&config));
                order.push(config);
            }
        }
        order
    }

    #[test]
    fn a_small_space_is_measured_whole() {
        let space = grid(6, 8);
        assert_eq!(run(&space, |_| Some(1.0), 6, 1).len(), 48);
        assert_eq!(run(&space, |_| Some(1.0), 60, 1).len(), 48);
    }

    #[test]
    fn one_factor_moves_reach_the_optimum_of_a_bowl_early() {
        let space = grid(30, 30);
        let bowl = |config: &Config| {
            let d = |knob, to: i64| (config.get(knob).unwrap_or(0) - to).abs() as f64;
            Some(1.0 + d("a", 20) + d("b", 7))
        };
        let order = run(&space, bowl, 20, 3);
        let best = order.iter().filter_map(bowl).fold(f64::INFINITY, f64::min);
        assert!(best <= 3.0, "best after {} of 900 is {best}", order.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_sequence_and_another_does_not() {
        let space = grid(20, 20);
        let time = |config: &Config| Some(1.0 + config.get("a").unwrap_or(0) as f64);
        assert_eq!(run(&space, time, 6, 7), run(&space, time, 6, 7));
        assert_ne!(run(&space, time, 6, 7), run(&space, time, 6, 8));
    }

    #[test]
    fn a_space_where_everything_fails_ends() {
        let space = grid(10, 10);
        assert_eq!(run(&space, |_| None, 40, 1).len(), 100);
    }
}
