//! Claims beside the gain: goal, regression by workload, gain by distribution, contradiction.

use serde::{Deserialize, Serialize};

use super::bounds::mean_bounds;
use super::robust::median;
use super::{Interval, median_bounds};

/// Whether the goal (a time ratio to the baseline) is met.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Upper 99 % bound of the time ratio, candidate over baseline.
    pub upper_ratio: f64,
    /// Whether it is at most the goal.
    pub met: GoalState,
}

/// Met or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GoalState {
    /// The bound is at most the goal.
    Met,
    /// It is above, or there is none.
    NotMet,
}

/// Compares the confirmed gain over the baseline (log-ratio, 99 % bounds) with the task's goal.
pub fn goal(over_baseline: Interval, goal: f64) -> Goal {
    let upper_ratio = (-over_baseline.lower).exp();
    Goal {
        upper_ratio,
        met: if upper_ratio <= goal {
            GoalState::Met
        } else {
            GoalState::NotMet
        },
    }
}

/// One workload's slowdown against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// Index of the workload.
    pub workload: u32,
    /// Point estimate of the slowdown (0.01 = 1 % slower; below zero: faster).
    pub point: f64,
    /// Upper bound, 95 % over all workloads together.
    pub upper: f64,
    /// What follows.
    pub state: RegressionState,
}

/// What a bound says of a permitted slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegressionState {
    /// The upper bound is within the limit.
    Holds,
    /// The limit lies between the bounds: not shown to hold.
    Unproven,
    /// The lower bound is beyond the limit.
    Slower,
}

/// Bounds each workload's slowdown (pairs by set: log-ratios baseline over candidate) at 95 %, Bonferroni.
pub fn regressions<'a>(
    workloads: impl ExactSizeIterator<Item = (u32, &'a [Vec<f64>])>,
    max_regression: f64,
) -> Vec<Regression> {
    let alpha = 0.05 / workloads.len().max(1) as f64;
    workloads
        .map(|(workload, sets)| {
            let open = Interval {
                lower: f64::NEG_INFINITY,
                point: 0.0,
                upper: f64::INFINITY,
            };
            let gain = median_bounds(sets, alpha).unwrap_or(open);
            let slowdown = |log_gain: f64| (-log_gain).exp() - 1.0;
            let state = if slowdown(gain.lower) <= max_regression {
                RegressionState::Holds
            } else if slowdown(gain.upper) > max_regression {
                RegressionState::Slower
            } else {
                RegressionState::Unproven
            };
            Regression {
                workload,
                point: slowdown(gain.point),
                upper: slowdown(gain.lower),
                state,
            }
        })
        .collect()
}

/// Whether a task lets speed depend on values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataDependence {
    /// The gain must hold on every timed distribution.
    Forbidden,
    /// No distribution may become slower than the baseline.
    Allowed,
}

/// The least gain over the baseline that a distribution must leave possible (log-ratio).
///
/// Half of the overall lower bound: distributions differ honestly (branches, denormals), a kernel that knows one of
/// them does not reach half on the others. Where values may matter, merely no loss.
pub fn distribution_floor(overall: Interval, dependence: DataDependence) -> f64 {
    match dependence {
        DataDependence::Forbidden => overall.lower / 2.0,
        DataDependence::Allowed => 0.0_f64.min(overall.lower),
    }
}

/// Reports whether a distribution's gain (pairs by set, of `count` distributions) is bounded below `floor`, at 1 %.
pub fn distribution_falls_short(sets: &[Vec<f64>], count: usize, floor: f64) -> Option<Interval> {
    let bounds = median_bounds(sets, 0.01 / count.max(1) as f64)?;
    (bounds.upper < floor).then_some(bounds)
}

/// Reports whether a distribution whose gain is bounded by `upper`, below `floor`, is the candidate's doing.
///
/// `own` is how much longer the candidate itself takes there than on its fastest distribution (log-ratio). A loss always
/// is its doing. Else a good part of what is missing must be its own unevenness: a kernel that takes the same time everywhere
/// gains little where the *baseline* happens to be fast, and cannot help that.
pub fn unevenness_is_own(upper: f64, floor: f64, own: f64) -> bool {
    upper < 0.0 || own >= (floor - upper) / 2.0
}

/// The claim's figures by other measures, each value one process set's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OtherMeasures<'a> {
    /// Pair values by lane medians, grouped by set.
    pub(crate) medians: &'a [Vec<f64>],
    /// Log-ratios of the plain sums of all unpreempted calls, one per set.
    pub(crate) sums: &'a [f64],
    /// Share of the candidate's calls that were preempted less the champion's, one per set.
    pub(crate) dropped: &'a [f64],
}

/// Error of each contradicting bound: these look for cheats, and must not fell honest kernels by chance.
const CONTRADICTION_ALPHA: f64 = 0.001;

/// Surplus of preempted calls that is never blamed on the candidate.
const DROPPED_SLACK: f64 = 0.1;

/// Names the measure that contradicts a claimed lower bound of the gain, if one does.
///
/// A measure contradicts when its *upper* bound is below the floor or below half of the claim: a kernel that is fast
/// only now and then, or that gives up the CPU in its slow calls so that they do not count.
pub(crate) fn contradiction(claimed: f64, floor: f64, other: &OtherMeasures<'_>) -> Option<String> {
    let least = floor.max(claimed / 2.0);
    if let Some(bounds) = median_bounds(other.medians, CONTRADICTION_ALPHA)
        && bounds.upper < least
    {
        return Some(format!(
            "lane medians gain at most {:.2} %",
            bounds.upper.exp_m1() * 100.0
        ));
    }
    let sums = mean_bounds(other.sums, CONTRADICTION_ALPHA);
    if sums.upper < least {
        return Some(format!("means gain at most {:.2} %", sums.upper.exp_m1() * 100.0));
    }
    let dropped = mean_bounds(other.dropped, CONTRADICTION_ALPHA);
    let middle = median(other.dropped).unwrap_or(0.0);
    (dropped.lower > 0.0 && middle > DROPPED_SLACK)
        .then(|| format!("{:.0} % more of its calls were preempted", middle * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(center: f64) -> Vec<Vec<f64>> {
        (0..10)
            .map(|set| {
                (0..6)
                    .map(|pair| center + 0.002 * f64::from((set + pair) % 5 - 2))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_goal_needs_its_bound_below_the_ratio_not_its_point() {
        let gain = Interval {
            lower: 0.1,
            point: 0.2,
            upper: 0.3,
        };
        assert_eq!(goal(gain, 0.91).met, GoalState::Met);
        assert_eq!(goal(gain, 0.90).met, GoalState::NotMet);
        assert_eq!(
            goal(
                Interval {
                    lower: f64::NEG_INFINITY,
                    ..gain
                },
                0.90
            )
            .met,
            GoalState::NotMet
        );
    }

    #[test]
    fn regression_tells_slower_from_unproven() {
        let (fine, slow, few) = (around(0.0), around(-0.06), vec![vec![0.0]; 3]);
        let states: Vec<_> = regressions([(0, &fine[..]), (1, &slow[..]), (2, &few[..])].into_iter(), 0.02)
            .into_iter()
            .map(|regression| regression.state)
            .collect();
        assert_eq!(
            states,
            [
                RegressionState::Holds,
                RegressionState::Slower,
                RegressionState::Unproven
            ]
        );
    }

    #[test]
    fn a_gain_on_one_distribution_only_falls_short_on_the_others() {
        let overall = Interval {
            lower: 0.2,
            point: 0.22,
            upper: 0.24,
        };
        let floor = distribution_floor(overall, DataDependence::Forbidden);
        assert!(distribution_falls_short(&around(0.0), 3, floor).is_some());
        assert!(distribution_falls_short(&around(0.15), 3, floor).is_none());
        let lenient = distribution_floor(overall, DataDependence::Allowed);
        assert!(distribution_falls_short(&around(0.0), 3, lenient).is_none());
        assert!(distribution_falls_short(&around(-0.1), 3, lenient).is_some());
    }

    #[test]
    fn a_kernel_is_not_blamed_for_where_the_baseline_is_fast() {
        assert!(!unevenness_is_own(0.02, 0.1, 0.01));
        assert!(unevenness_is_own(0.02, 0.1, 0.05));
        assert!(unevenness_is_own(-0.01, 0.1, 0.0));
    }

    #[test]
    fn a_measure_contradicts_only_when_it_is_sure() {
        let good = around(0.05);
        let sums = vec![0.05, -0.3, 0.4, 0.1, 0.0, -0.1, 0.2];
        let even = vec![0.01, -0.02, 0.0, 0.01, -0.01, 0.0, 0.0];
        let base = OtherMeasures {
            medians: &good,
            sums: &sums,
            dropped: &even,
        };
        assert_eq!(contradiction(0.045, 0.01, &base), None);
        let flat = around(0.0);
        assert!(
            contradiction(
                0.045,
                0.01,
                &OtherMeasures {
                    medians: &flat,
                    ..base.clone()
                }
            )
            .is_some()
        );
        let slow = vec![-0.2, -0.21, -0.19, -0.2, -0.22, -0.2];
        assert!(
            contradiction(
                0.045,
                0.01,
                &OtherMeasures {
                    sums: &slow,
                    ..base.clone()
                }
            )
            .is_some()
        );
        let yields = vec![0.4, 0.42, 0.38, 0.41, 0.39, 0.4];
        assert!(
            contradiction(
                0.045,
                0.01,
                &OtherMeasures {
                    dropped: &yields,
                    ..base
                }
            )
            .is_some()
        );
    }
}
