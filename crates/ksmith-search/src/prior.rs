//! The analytic prior: what a configuration should cost before anything was measured.
//!
//! A manifest predicts cycles from sizes, dtypes, knobs and machine facts. Only ratios are used, so the unit does not
//! matter, and once a few configurations were measured their residuals correct the rest ([`Correction`]).

use std::collections::BTreeMap;

use ksmith_task::expr::{Env, Expr};

use crate::manifest::WORKERS;
use crate::{Config, Manifest};

/// Names and values of one dev workload, with its weight.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) env: Env,
    pub(crate) weight: f64,
}

/// Predicted time as a ratio to plain C: the weighted geometric mean over the workloads. `None` where the manifest's
/// expressions fail.
pub(crate) fn predict(manifest: &Manifest, settings: &[Setting], config: &Config) -> Option<f64> {
    let mut log = 0.0;
    let mut weights = 0.0;
    for setting in settings {
        let mut env = setting.env.clone();
        config.enter(&mut env);
        let workers = config.get(WORKERS).unwrap_or(1).max(1);
        let start = if workers > 1 { TEAM_CYCLES } else { 0.0 };
        let cycles = positive(&manifest.cycles, &env)? / workers as f64 + start;
        let plain = positive(&manifest.plain_cycles, &env)?;
        log += setting.weight * (cycles / plain).ln();
        weights += setting.weight;
    }
    (weights > 0.0).then(|| (log / weights).exp())
}

/// What starting and joining a team of threads costs, in cycles: some microseconds on virtual CPUs.
const TEAM_CYCLES: f64 = 20_000.0;

fn positive(expr: &Expr, env: &Env) -> Option<f64> {
    expr.eval_float(env)
        .ok()
        .filter(|value| *value > 0.0 && value.is_finite())
}

/// How much the residuals count. The defaults are checked out of sample by [`crate::Validation`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weighing {
    /// A knob value's residual counts in full only after several measurements.
    pub(crate) shrinkage: f64,
    /// What a failed configuration is taken to cost: its knob values look this many e-folds slower than predicted.
    pub(crate) failure: f64,
}

impl Default for Weighing {
    fn default() -> Self {
        Self {
            shrinkage: 1.0,
            failure: 1.0,
        }
    }
}

/// Log-residuals of the measured configurations, split into a common part and one part per knob value.
#[derive(Debug, Default)]
pub(crate) struct Correction {
    common: f64,
    parts: BTreeMap<(String, i64), f64>,
}

impl Correction {
    /// Fits the residuals of `(configuration, prior, measured)`; `measured` is `None` where a configuration failed.
    pub(crate) fn fit<'a>(
        measured: impl Iterator<Item = (&'a Config, f64, Option<f64>)>,
        weighing: Weighing,
    ) -> Self {
        let residuals: Vec<(&Config, f64, bool)> = measured
            .map(|(config, prior, time)| {
                (
                    config,
                    time.map_or(weighing.failure, |time| (time / prior).ln()),
                    time.is_some(),
                )
            })
            .collect();
        let passed = residuals.iter().filter(|(_, _, passed)| *passed);
        let count = passed.clone().count();
        let common = if count == 0 {
            0.0
        } else {
            passed.map(|(_, r, _)| r).sum::<f64>() / count as f64
        };
        let mut sums: BTreeMap<(String, i64), (f64, f64)> = BTreeMap::new();
        for (config, residual, passed) in &residuals {
            let rest = if *passed { residual - common } else { *residual };
            for (name, value) in &config.0 {
                let (sum, n) = sums.entry((name.clone(), *value)).or_default();
                *sum += rest;
                *n += 1.0;
            }
        }
        let parts = sums
            .into_iter()
            .map(|(key, (sum, n))| (key, sum / (n + weighing.shrinkage)))
            .collect();
        Self { common, parts }
    }

    /// The prior of a configuration, corrected.
    pub(crate) fn apply(&self, config: &Config, prior: f64) -> f64 {
        let parts: f64 = config.0.iter().filter_map(|pair| self.parts.get(pair)).sum();
        // Knobs are correlated in what was measured, so their parts are averaged rather than added.
        let mean = parts / config.0.len().max(1) as f64;
        prior * (self.common + mean).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(a: i64, b: i64) -> Config {
        Config(vec![("a".to_owned(), a), ("b".to_owned(), b)])
    }

    #[test]
    fn a_knob_value_that_disappoints_is_ranked_lower() {
        let measured = [
            (config(1, 1), 1.0, Some(1.0)),
            (config(2, 1), 1.0, Some(2.0)),
            (config(2, 2), 1.0, Some(2.0)),
        ];
        let fit = Correction::fit(
            measured
                .iter()
                .map(|(config, prior, time)| (config, *prior, *time)),
            Weighing::default(),
        );
        assert!(fit.apply(&config(1, 2), 1.0) < fit.apply(&config(2, 3), 1.0));
    }

    #[test]
    fn a_failure_teaches_too() {
        let measured = [(config(1, 1), 1.0, Some(1.0)), (config(2, 1), 1.0, None)];
        let fit = Correction::fit(
            measured
                .iter()
                .map(|(config, prior, time)| (config, *prior, *time)),
            Weighing::default(),
        );
        assert!(fit.apply(&config(1, 2), 1.0) < fit.apply(&config(2, 2), 1.0));
    }

    #[test]
    fn without_measurements_the_prior_stands() {
        let fit = Correction::fit(std::iter::empty(), Weighing::default());
        assert_eq!(fit.apply(&config(1, 1), 0.25), 0.25);
    }
}
