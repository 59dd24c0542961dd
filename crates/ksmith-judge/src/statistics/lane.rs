//! One lane's values, from the calls during which neither side was preempted.

use super::robust::{mean, quantile, sorted};

/// Which quantile of a lane is its value: low enough to miss the slow state of the host, high enough that a kernel
/// must be fast in more than one call of four. Minima are sharper, and easier to game (11 to 18 % false accepts).
const LANE_QUANTILE: f64 = 0.25;

/// Natural logarithms of one lane's time in nanoseconds, by three measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LaneValue {
    /// The lower quartile: what is judged.
    pub(crate) quartile: f64,
    /// The median: must not contradict.
    pub(crate) median: f64,
    /// The mean: must not contradict.
    pub(crate) mean: f64,
}

/// Values of a lane of `calls` calls, of which these ran unpreempted; `None` where fewer than half of them did.
pub(crate) fn lane_value(calls: usize, unpreempted: impl Iterator<Item = u64>) -> Option<LaneValue> {
    let times = sorted(unpreempted.map(|ns| ns.max(1) as f64));
    if times.is_empty() || times.len() * 2 < calls {
        return None;
    }
    Some(LaneValue {
        quartile: quantile(&times, LANE_QUANTILE)?.ln(),
        median: quantile(&times, 0.5)?.ln(),
        mean: mean(&times)?.ln(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_its_lower_quartile() {
        let value = lane_value(5, [500, 100, 300, 200, 400].into_iter()).unwrap();
        assert!((value.quartile.exp() - 200.0).abs() < 1e-9);
        assert!((value.median.exp() - 300.0).abs() < 1e-9);
        assert!((value.mean.exp() - 300.0).abs() < 1e-9);
    }

    #[test]
    fn a_lane_with_fewer_than_half_of_its_calls_says_nothing() {
        assert!(lane_value(8, [1, 2, 3, 4].into_iter()).is_some());
        assert!(lane_value(8, [1, 2, 3].into_iter()).is_none());
        assert!(lane_value(0, std::iter::empty()).is_none());
    }
}
