//! Bounds of a median that are honest about both sources of variance.
//!
//! Pairs of one process set share its processes: a small bias of a process does not shrink with more pairs. The sign
//! bound over pooled pairs sees the noise within sets, the t bound over set medians the noise between them; the
//! weaker of the two counts (simulated on recorded data: either alone accepts equal kernels too often, and a block
//! bootstrap over few processes does so in 22 % of cases).

use super::Interval;
use super::distribution::{sign_rank, student_quantile};
use super::robust::{mean, median, sorted, standard_error};

/// Least number of process sets of which a t bound is taken.
pub const MIN_SETS: usize = 5;

/// Point and one-sided bounds, each at error `alpha`, of the median of pair values grouped by process set.
///
/// The point is the median of all pairs. `None` without any pair; an end is open where the samples are too few.
pub fn median_bounds(sets: &[Vec<f64>], alpha: f64) -> Option<Interval> {
    let pooled = sorted(sets.iter().flatten().copied());
    Some(sign_bounds(&pooled, alpha)?.weaker(set_bounds(sets, alpha)))
}

/// Exact order-statistic bounds of the median of sorted, independent values.
pub(crate) fn sign_bounds(pooled: &[f64], alpha: f64) -> Option<Interval> {
    let point = super::robust::quantile(pooled, 0.5)?;
    let ends = sign_rank(pooled.len(), alpha)
        .and_then(|rank| Some((*pooled.get(rank - 1)?, *pooled.get(pooled.len() - rank)?)));
    let (lower, upper) = ends.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    Some(Interval { lower, point, upper })
}

/// Student's bounds over the medians of sets, each set one sample.
pub(crate) fn set_bounds(sets: &[Vec<f64>], alpha: f64) -> Interval {
    let medians: Vec<f64> = sets.iter().filter_map(|set| median(set)).collect();
    mean_bounds(&medians, alpha)
}

/// Student's bounds of a mean; open with fewer than [`MIN_SETS`] values.
pub(crate) fn mean_bounds(values: &[f64], alpha: f64) -> Interval {
    let point = mean(values).unwrap_or(0.0);
    match standard_error(values) {
        Some(error) if values.len() >= MIN_SETS => {
            let margin = student_quantile(1.0 - alpha, values.len() - 1) * error;
            Interval {
                lower: point - margin,
                point,
                upper: point + margin,
            }
        }
        Some(_) | None => Interval {
            lower: f64::NEG_INFINITY,
            point,
            upper: f64::INFINITY,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn groups() -> impl Strategy<Value = Vec<Vec<f64>>> {
        proptest::collection::vec(proptest::collection::vec(-0.5..0.5_f64, 1..8), 1..14)
    }

    fn close(left: f64, right: f64) -> bool {
        left == right || (left - right).abs() < 1e-9
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_point_and_follow_a_shift(sets in groups(), shift in -1.0..1.0_f64) {
            let before = median_bounds(&sets, 0.01).unwrap();
            prop_assert!(before.lower <= before.point && before.point <= before.upper);
            let moved: Vec<Vec<f64>> = sets.iter().map(|set| set.iter().map(|v| v + shift).collect()).collect();
            let after = median_bounds(&moved, 0.01).unwrap();
            prop_assert!(close(after.lower, before.lower + shift));
            prop_assert!(close(after.point, before.point + shift));
            prop_assert!(close(after.upper, before.upper + shift));
        }

        #[test]
        fn raising_one_pair_never_lowers_the_sign_bound(sets in groups(), raise in 0.0..1.0_f64, at in any::<prop::sample::Index>()) {
            let mut pooled = sorted(sets.iter().flatten().copied());
            let before = sign_bounds(&pooled, 0.05).unwrap();
            let at = at.index(pooled.len());
            pooled[at] += raise;
            let after = sign_bounds(&sorted(pooled), 0.05).unwrap();
            prop_assert!(after.lower >= before.lower && after.point >= before.point && after.upper >= before.upper);
        }

        #[test]
        fn the_order_of_sets_and_pairs_does_not_matter(sets in groups()) {
            let mut other = sets.clone();
            other.reverse();
            for set in &mut other {
                set.reverse();
            }
            let (left, right) = (median_bounds(&sets, 0.01).unwrap(), median_bounds(&other, 0.01).unwrap());
            prop_assert!(close(left.lower, right.lower) && close(left.upper, right.upper));
        }

        #[test]
        fn swapping_the_arms_mirrors_the_bounds(sets in groups()) {
            let mirrored: Vec<Vec<f64>> = sets.iter().map(|set| set.iter().map(|v| -v).collect()).collect();
            let (left, right) = (median_bounds(&sets, 0.01).unwrap(), median_bounds(&mirrored, 0.01).unwrap());
            prop_assert!(close(left.lower, -right.upper) && close(left.upper, -right.lower));
            prop_assert!(close(left.point, -right.point));
        }

        #[test]
        fn a_smaller_error_never_narrows_the_bounds(sets in groups()) {
            let (wide, narrow) = (median_bounds(&sets, 0.001).unwrap(), median_bounds(&sets, 0.05).unwrap());
            prop_assert!(wide.lower <= narrow.lower && wide.upper >= narrow.upper);
        }
    }

    #[test]
    fn fewer_than_five_sets_leave_both_ends_open() {
        let sets = vec![vec![0.01; 50]; 4];
        let bounds = median_bounds(&sets, 0.01).unwrap();
        assert_eq!(
            (bounds.lower, bounds.point, bounds.upper),
            (f64::NEG_INFINITY, 0.01, f64::INFINITY)
        );
        assert_eq!(median_bounds(&[], 0.01), None);
        assert_eq!(median_bounds(&[vec![]], 0.01), None);
    }
}
