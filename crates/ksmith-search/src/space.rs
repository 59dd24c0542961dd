//! What the knobs of a structure span.

use std::fmt;

use ksmith_task::expr::Env;

use crate::Manifest;
use crate::manifest::WORKERS;

/// More configurations than this are not listed: a space this large needs fewer values, not a cleverer search.
const MAX_CONFIGS: usize = 50_000;

/// One value per knob, in the manifest's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Config(pub Vec<(String, i64)>);

impl Config {
    /// The value of a knob.
    pub fn get(&self, knob: &str) -> Option<i64> {
        self.0
            .iter()
            .find(|(name, _)| name == knob)
            .map(|(_, value)| *value)
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        text.split_whitespace()
            .map(|pair| {
                let (name, value) = pair.split_once('=')?;
                Some((name.to_owned(), value.parse().ok()?))
            })
            .collect::<Option<Vec<_>>>()
            .map(Self)
    }

    /// Number of knobs with different values.
    pub fn distance(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).filter(|(a, b)| a != b).count()
    }

    pub(crate) fn enter(&self, env: &mut Env) {
        for (name, value) in &self.0 {
            env.set(name.clone(), *value);
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{name}={value}")?;
        }
        Ok(())
    }
}

/// The valid configurations of a structure for one instance on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// In order of the knobs' values, the first knob slowest.
    pub configs: Vec<Config>,
}

impl Space {
    /// Lists what the constraints leave. `env` holds machine facts, dtypes and sizes; `threads` is what the policy
    /// allows.
    pub(crate) fn of(manifest: &Manifest, env: &Env, threads: i64) -> Self {
        let workers = if manifest.parallel && threads > 1 {
            halvings(threads)
        } else {
            Vec::new()
        };
        let mut configs = vec![Config(Vec::new())];
        let knobs = manifest
            .knobs
            .iter()
            .map(|knob| (knob.name.as_str(), &knob.values));
        for (name, values) in knobs.chain(Some((WORKERS, &workers)).filter(|(_, values)| !values.is_empty()))
        {
            configs = configs
                .iter()
                .flat_map(|config| {
                    values.iter().map(|value| {
                        let mut longer = config.clone();
                        longer.0.push((name.to_owned(), *value));
                        longer
                    })
                })
                .take(MAX_CONFIGS)
                .collect();
        }
        configs.retain(|config| {
            let mut env = env.clone();
            config.enter(&mut env);
            manifest
                .constraints
                .iter()
                .all(|constraint| constraint.eval_bool(&env) == Ok(true))
        });
        Self { configs }
    }

    /// The configurations that differ from `config` in exactly one knob.
    pub fn neighbours<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = &'a Config> {
        self.configs
            .iter()
            .filter(move |other| other.distance(config) == 1)
    }
}

/// All threads, half of them, and so on down to one.
fn halvings(threads: i64) -> Vec<i64> {
    std::iter::successors(Some(threads), |count| (*count > 1).then_some(count / 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_tried_in_halves() {
        assert_eq!(halvings(1), [1]);
        assert_eq!(halvings(6), [6, 3, 1]);
    }

    #[test]
    fn a_configuration_survives_its_text() {
        let config = Config(vec![("lanes".to_owned(), 16), ("keep".to_owned(), 0)]);
        assert_eq!(config.to_string(), "lanes=16 keep=0");
        assert_eq!(Config::parse(&config.to_string()), Some(config));
    }

    #[test]
    fn text_without_values_is_no_configuration() {
        assert_eq!(Config::parse("lanes"), None);
        assert_eq!(Config::parse("lanes=wide"), None);
    }
}
