//! How error probability is spent over looks and confirmations.

use super::distribution::normal_quantile;

/// Share of the decision stage's error that each look may spend on "clearly not better"; the sum is 1.
///
/// Accepting is possible at the last look only and spends the whole error there: looks that can only reject do not
/// raise the rate of false accepts. They could drop a better kernel, hence the split.
const REJECTING_SHARES: [f64; 3] = [0.2, 0.3, 0.5];

/// Number of fixed looks in a decision stage.
pub const LOOKS: usize = REJECTING_SHARES.len();

/// Error probability of the rejecting bound at `look` (from 0) of a stage with error `alpha`.
pub fn rejecting_alpha(alpha: f64, look: usize) -> f64 {
    alpha
        * REJECTING_SHARES
            .get(look)
            .copied()
            .unwrap_or(REJECTING_SHARES[LOOKS - 1])
}

/// Error probability of the `k`-th confirmation of a run (from 1): min(0.01, 0.05 / (k (k + 1))).
///
/// The terms 1 / (k (k + 1)) sum to 1, so that a whole run confirms a false gain with at most 5 %, however long it is.
pub fn confirmation_alpha(k: u32) -> f64 {
    let k = f64::from(k.max(1));
    (0.05 / (k * (k + 1.0))).min(0.01)
}

/// Asymptotic ratio of the standard error of a median to that of a mean, for normal samples: sqrt(pi / 2).
const MEDIAN_ERROR: f64 = 1.253_314_1;

/// What a stage must be able to tell apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Gain to be found (log-ratio).
    pub gain: f64,
    /// Bound that it must exceed (log-ratio).
    pub floor: f64,
    /// One-sided error of the accepting bound.
    pub alpha: f64,
    /// Chance of a miss.
    pub miss: f64,
}

/// Pairs that a stage needs, from the robust spread of its A/A pairs (log-ratio).
///
/// Normal theory of the median. Two conditions, the stronger counts: the lower bound must clear the fixed floor, and
/// it must clear the half-width of the A/A interval (99 %, so 2.58 standard errors), which shrinks with the pairs.
/// At a gain of 3 %, alpha 1 % and a miss of 2 % that is 7.5 and 8.5 times the squared spread in percent.
pub fn required_pairs(spread: f64, power: Power) -> f64 {
    pairs_for_error(MEDIAN_ERROR * spread, power)
}

/// Pairs that a stage needs, from the errors that its A/A pairs (by set) really have.
///
/// Where the host's speed is bimodal, pairs are far from normal and set medians scatter more than the spread of pairs
/// predicts. So the standard error is read off the bounds themselves, sign and t, and scaled with the root of the
/// count. It rests on A/A pairs alone: the candidate's times cannot stretch or cut a stage.
pub fn required_pairs_from(control: &[Vec<f64>], power: Power) -> f64 {
    let count: usize = control.iter().map(Vec::len).sum();
    let pooled = super::robust::sorted(control.iter().flatten().copied());
    let within = super::bounds::sign_bounds(&pooled, power.alpha).map_or(0.0, |bounds| {
        bounds.half_width() / normal_quantile(1.0 - power.alpha)
    });
    let medians: Vec<f64> = control.iter().filter_map(|set| super::median(set)).collect();
    let between = super::robust::standard_error(&medians).unwrap_or(0.0);
    let error = within.max(between) * (count as f64).sqrt();
    if error.is_finite() {
        pairs_for_error(error, power)
    } else {
        0.0
    }
}

/// Pairs for an estimate whose standard error is `error` over the root of their number.
fn pairs_for_error(error: f64, power: Power) -> f64 {
    let margin = normal_quantile(1.0 - power.alpha) + normal_quantile(1.0 - power.miss);
    let beyond_floor = (power.gain - power.floor).max(1e-6);
    let fixed = (margin * error / beyond_floor).powi(2);
    let control =
        ((margin + normal_quantile(1.0 - super::control::ALPHA)) * error / power.gain.max(1e-6)).powi(2);
    fixed.max(control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejecting_looks_spend_the_whole_error_once() {
        let total: f64 = (0..LOOKS).map(|look| rejecting_alpha(0.01, look)).sum();
        assert!((total - 0.01).abs() < 1e-12);
    }

    #[test]
    fn confirmations_of_a_run_never_spend_more_than_five_percent() {
        assert!((confirmation_alpha(1) - 0.01).abs() < 1e-12);
        assert!((confirmation_alpha(2) - 0.05 / 6.0).abs() < 1e-12);
        assert!((1..100_000).map(confirmation_alpha).sum::<f64>() <= 0.05);
    }

    #[test]
    fn pairs_follow_the_square_of_the_spread() {
        let power = Power {
            gain: 0.03,
            floor: 0.01,
            alpha: 0.01,
            miss: 0.02,
        };
        let one = required_pairs(0.01, power);
        assert!((8.3..8.7).contains(&one), "{one}");
        assert!((required_pairs(0.02, power) / one - 4.0).abs() < 1e-9);
        assert!(
            required_pairs(
                0.01,
                Power {
                    alpha: 0.001,
                    ..power
                }
            ) > one
        );
        assert!(required_pairs(0.01, Power { floor: 0.02, ..power }) > one);
    }
}
