//! What earlier runs on this machine say about where to begin: the nearest solved tasks of the same family.
//!
//! Near means: the same structure, the same dtypes, similar sizes. What was best there is tried first here; of another
//! structure only the knobs that both have are taken over. Nothing else is learned from earlier runs.

use std::collections::BTreeMap;

use crate::cache::CacheEntry;
use crate::{Config, Space};

/// Another structure is as far as sizes that differ fourfold in each of two axes.
const OTHER_STRUCTURE: f64 = 4.0;
/// Other dtypes are as far as sizes that differ twofold.
const OTHER_DTYPES: f64 = 1.0;
/// An axis that only one of the tasks has.
const OTHER_AXIS: f64 = 1.0;

/// The search that is about to begin.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) family: &'a str,
    pub(crate) structure: &'a str,
    pub(crate) instance: &'a str,
    pub(crate) axes: &'a BTreeMap<String, f64>,
    pub(crate) space: &'a Space,
    pub(crate) priors: &'a [f64],
}

impl Target<'_> {
    /// Configurations to begin with: the best of the nearest solved task first.
    pub(crate) fn seeds(&self, entries: &[CacheEntry]) -> Vec<Config> {
        let mut best: BTreeMap<(&str, &str), &CacheEntry> = BTreeMap::new();
        for entry in entries
            .iter()
            .filter(|entry| entry.family == self.family && entry.time.is_some())
        {
            let known = best.entry((&entry.structure, &entry.instance)).or_insert(entry);
            if entry.time < known.time {
                *known = entry;
            }
        }
        let mut solved: Vec<(f64, &CacheEntry)> = best
            .into_values()
            .map(|entry| (self.distance(entry), entry))
            .collect();
        solved.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut seeds: Vec<Config> = Vec::new();
        for (_, entry) in solved {
            if let Some(config) = self.project(entry)
                && !seeds.contains(&config)
            {
                seeds.push(config);
            }
        }
        seeds
    }

    fn distance(&self, entry: &CacheEntry) -> f64 {
        let structure = if entry.structure == self.structure {
            0.0
        } else {
            OTHER_STRUCTURE
        };
        let dtypes = |instance: &str| instance.find('[').map(|at| instance[at..].to_owned());
        let dtypes = if dtypes(&entry.instance) == dtypes(self.instance) {
            0.0
        } else {
            OTHER_DTYPES
        };
        let mut axes = 0.0;
        for (name, size) in self.axes {
            axes += match entry.axes.get(name) {
                Some(other) => (size / other).log2().abs(),
                None => OTHER_AXIS,
            };
        }
        axes += OTHER_AXIS
            * entry
                .axes
                .keys()
                .filter(|name| !self.axes.contains_key(*name))
                .count() as f64;
        structure + dtypes + axes
    }

    /// The configuration here that shares most knob values with the solved one; by the prior where several do.
    fn project(&self, entry: &CacheEntry) -> Option<Config> {
        let solved = Config::parse(&entry.config)?;
        if self.space.configs.contains(&solved) {
            return Some(solved);
        }
        let shared = |config: &Config| {
            config
                .0
                .iter()
                .filter(|(name, value)| solved.get(name) == Some(*value))
                .count()
        };
        let (at, _) = self
            .space
            .configs
            .iter()
            .enumerate()
            .filter(|(_, config)| shared(config) > 0)
            .min_by(|(a, left), (b, right)| {
                shared(right)
                    .cmp(&shared(left))
                    .then(self.priors[*a].total_cmp(&self.priors[*b]))
            })?;
        Some(self.space.configs[at].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(structure: &str, instance: &str, cols: f64, config: &str, time: f64) -> CacheEntry {
        CacheEntry {
            schema: 2,
            machine: "m".to_owned(),
            family: "row-reduction".to_owned(),
            instance: instance.to_owned(),
            structure: structure.to_owned(),
            axes: BTreeMap::from([("cols".to_owned(), cols)]),
            config: config.to_owned(),
            prior: 0.1,
            time: Some(time),
            code: String::new(),
        }
    }

    fn space() -> Space {
        let configs = ["lanes=16 unroll=2", "lanes=8 unroll=2", "lanes=8 unroll=4"]
            .iter()
            .filter_map(|text| Config::parse(text))
            .collect();
        Space { configs }
    }

    fn seeds(entries: &[CacheEntry]) -> Vec<String> {
        let space = space();
        let axes = BTreeMap::from([("cols".to_owned(), 1000.0)]);
        let target = Target {
            family: "row-reduction",
            structure: "rows",
            instance: "mine[T=f32]",
            axes: &axes,
            space: &space,
            priors: &[0.1, 0.3, 0.2],
        };
        target.seeds(entries).iter().map(Config::to_string).collect()
    }

    #[test]
    fn the_nearest_solved_task_comes_first_whatever_its_gain() {
        let found = seeds(&[
            entry("rows", "far[T=f32]", 64_000.0, "lanes=16 unroll=2", 0.01),
            entry("rows", "near[T=f32]", 1024.0, "lanes=8 unroll=4", 0.5),
            entry("rows", "near[T=f32]", 1024.0, "lanes=8 unroll=2", 0.9),
        ]);
        assert_eq!(found, ["lanes=8 unroll=4", "lanes=16 unroll=2"]);
    }

    #[test]
    fn another_structure_gives_the_knobs_that_both_have() {
        let found = seeds(&[entry("others", "near[T=f32]", 1024.0, "lanes=8 chunk=64", 0.1)]);
        assert_eq!(
            found,
            ["lanes=8 unroll=4"],
            "the prior chooses between the two of 8 lanes"
        );
    }

    #[test]
    fn another_family_or_a_failure_gives_nothing() {
        let mut other = entry("rows", "near[T=f32]", 1024.0, "lanes=8 unroll=4", 0.1);
        other.family = "gemm".to_owned();
        let mut failed = entry("rows", "near[T=f32]", 1024.0, "lanes=8 unroll=4", 0.1);
        failed.time = None;
        assert!(seeds(&[other, failed]).is_empty());
    }
}
