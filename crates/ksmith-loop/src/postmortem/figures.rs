//! The few figures that a post-mortem needs: a median, a share, a rank correlation.

/// The median; of an even number the mean of the middle two.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// A share; none of nothing.
pub(super) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then_some(part / whole)
}

/// Spearman's rank correlation: Pearson's of the ranks, equal values sharing their mean rank (Kendall, *Rank Correlation
/// Methods*, 1948). None with fewer than three pairs or where one side never varies.
pub(super) fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let a = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let b = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let sum = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum() };
    let (both, of_a, of_b) = (sum(&a, &b), sum(&a, &a), sum(&b, &b));
    (of_a > 0.0 && of_b > 0.0).then(|| both / (of_a * of_b).sqrt())
}

/// Ranks from 1, equal values sharing their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .map(|value| {
            let less = values.iter().filter(|other| *other < value).count() as f64;
            let equal = values.iter().filter(|other| *other == value).count() as f64;
            less + (equal + 1.0) / 2.0
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_shares_of_little() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((share(1.0, 4.0), share(0.0, 0.0)), (Some(0.25), None));
    }

    #[test]
    fn rank_correlation_is_that_of_the_textbook() {
        let close = |pairs: &[(f64, f64)], wanted: f64| (spearman(pairs).unwrap() - wanted).abs() < 1e-12;
        assert!(close(&[(1.0, 10.0), (2.0, 20.0), (3.0, 90.0)], 1.0));
        assert!(close(&[(1.0, 9.0), (2.0, 5.0), (3.0, 1.0)], -1.0));
        // 1 - 6*sum(d^2)/(n(n^2-1)) with d = (0, 1, -1, 0).
        assert!(close(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)], 0.8));
        assert_eq!(spearman(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]), None);
        assert_eq!(spearman(&[(1.0, 2.0), (2.0, 3.0)]), None);
    }
}
