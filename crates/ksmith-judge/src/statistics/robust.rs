//! Order statistics: quantiles, medians, a robust spread.

/// Consistency factor of the median absolute deviation for a normal distribution, 1 / Phi^-1(3/4).
const NORMAL_MAD: f64 = 1.482_602_2;

/// Sorts a copy, smallest first. Times and their logarithms are finite.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The quantile `p` of sorted values with linear interpolation (Hyndman and Fan, type 7); `None` of nothing.
pub(crate) fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = p.clamp(0.0, 1.0) * last as f64;
    let below = at.floor();
    let index = below as usize;
    let low = *sorted.get(index)?;
    let high = *sorted.get(index + 1).unwrap_or(&low);
    Some(low + (at - below) * (high - low))
}

/// The median of values in any order; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(&sorted(values.iter().copied()), 0.5)
}

/// Robust standard deviation about the median: 1.48 times the median absolute deviation.
pub fn spread(values: &[f64]) -> Option<f64> {
    let center = median(values)?;
    Some(
        NORMAL_MAD
            * median(
                &values
                    .iter()
                    .map(|value| (value - center).abs())
                    .collect::<Vec<_>>(),
            )?,
    )
}

/// The arithmetic mean, summed in order; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Standard error of the mean; `None` of fewer than two.
pub(crate) fn standard_error(values: &[f64]) -> Option<f64> {
    let center = mean(values)?;
    let count = values.len() as f64;
    (count > 1.0).then(|| {
        let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(quantile(&values, 0.25), Some(2.0));
        assert_eq!(quantile(&values, 0.5), Some(3.0));
        assert_eq!(quantile(&values[..4], 0.25), Some(1.75));
        assert_eq!(quantile(&values, 1.0), Some(5.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn one_wild_sample_does_not_move_the_spread() {
        let mut values: Vec<f64> = (0..101).map(f64::from).collect();
        let before = spread(&values).unwrap();
        values[100] = 1e12;
        assert_eq!(spread(&values), Some(before));
    }
}
