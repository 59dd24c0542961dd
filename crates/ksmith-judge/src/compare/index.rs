//! Outputs that choose: indices of the best `k` scores along an axis, and values taken at the chosen places.
//!
//! Ties make several answers right. The rule asks what every right answer has: indices in range, no index twice, each
//! chosen score at least the k-th best minus `tie`, and scores in falling order up to `tie`.

use super::rule::{Cause, Outcome, Rule, Worst};

/// A choice of `k` of `n` scores per row; `inner` elements lie between neighbours of the axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexRule {
    /// Length of the axis chosen from.
    pub n: usize,
    /// How many are chosen.
    pub k: usize,
    /// Elements between neighbours along the axis (1 for the last axis).
    pub inner: usize,
    /// Scores closer than this count as equal.
    pub tie: f64,
}

impl IndexRule {
    fn choice(&self, row: usize, j: usize) -> usize {
        (row / self.inner * self.k + j) * self.inner + row % self.inner
    }

    fn score(&self, row: usize, j: usize) -> usize {
        (row / self.inner * self.n + j) * self.inner + row % self.inner
    }

    fn rows(&self, scores: usize) -> usize {
        scores.checked_div(self.n).unwrap_or(0)
    }
}

/// Judges chosen indices against the scores they were chosen from (NaN scores count as the lowest).
pub fn choices(rule: &IndexRule, indices: &[i64], scores: &[f64]) -> Outcome {
    let rows = rule.rows(scores.len());
    if rule.n == 0 || rule.inner == 0 || indices.len() != rows * rule.k || rule.k > rule.n {
        return failure(0, 0.0, 0.0, indices.len().max(1));
    }
    let mut outcome = Outcome::PASS;
    let mut seen = vec![usize::MAX; rule.n];
    let mut sorted = Vec::with_capacity(rule.n);
    let low = |score: f64| if score.is_nan() { f64::NEG_INFINITY } else { score };
    for row in 0..rows {
        sorted.clear();
        sorted.extend((0..rule.n).map(|j| low(scores[rule.score(row, j)])));
        if rule.k == 0 {
            continue;
        }
        let (_, kth, _) = sorted.select_nth_unstable_by(rule.k - 1, |a, b| b.total_cmp(a));
        let kth = *kth;
        let mut before = f64::INFINITY;
        for j in 0..rule.k {
            let place = rule.choice(row, j);
            let index = usize::try_from(indices[place])
                .ok()
                .filter(|index| *index < rule.n);
            let Some(index) = index else {
                outcome = outcome.join(failure(place, indices[place] as f64, kth, 1));
                continue;
            };
            let score = low(scores[rule.score(row, index)]);
            let right = seen[index] != row && score >= kth - rule.tie && score <= before + rule.tie;
            seen[index] = row;
            if !right {
                outcome = outcome.join(failure(place, score, kth, 1));
            }
            before = score;
        }
    }
    outcome
}

fn failure(index: usize, got: f64, want: f64, failures: usize) -> Outcome {
    Outcome {
        failures,
        cause: Some(Cause::Index),
        worst: Some(Worst {
            index,
            got,
            want,
            bound: 0.0,
        }),
        ratio: f64::INFINITY,
    }
}

/// Judges values that belong to chosen indices: each is compared with the expectation at the candidate's own index.
///
/// `want` has the full axis (`n`), `out` the chosen part (`k`).
pub fn along(
    values: &Rule,
    rule: &IndexRule,
    indices: &[i64],
    out: &[f64],
    want: &[f64],
    scale: Option<&[f64]>,
) -> Outcome {
    let rows = rule.rows(want.len());
    if rule.n == 0 || rule.inner == 0 || out.len() != rows * rule.k || indices.len() != out.len() {
        return failure(0, 0.0, 0.0, out.len().max(1));
    }
    let mut outcome = Outcome::PASS;
    for row in 0..rows {
        for j in 0..rule.k {
            let place = rule.choice(row, j);
            let index = usize::try_from(indices[place])
                .ok()
                .filter(|index| *index < rule.n);
            let Some(index) = index else {
                outcome = outcome.join(failure(place, indices[place] as f64, 0.0, 1));
                continue;
            };
            let source = rule.score(row, index);
            let size = scale.map_or(0.0, |scale| scale[source]);
            let bound = values.bound(want[source], size);
            if let Err(cause) = values.element(out[place], want[source], size) {
                outcome = outcome.join(Outcome {
                    failures: 1,
                    cause: Some(cause),
                    worst: Some(Worst {
                        index: place,
                        got: out[place],
                        want: want[source],
                        bound,
                    }),
                    ratio: f64::INFINITY,
                });
            } else {
                let ratio = (out[place] - want[source]).abs() / bound;
                if ratio.is_finite() {
                    outcome.ratio = outcome.ratio.max(ratio);
                }
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: IndexRule = IndexRule {
        n: 5,
        k: 2,
        inner: 1,
        tie: 1e-6,
    };

    #[test]
    fn any_choice_among_equals_is_right_and_everything_else_is_not() {
        let scores = [1.0, 3.0, 3.0, 2.0, 3.0];
        let passes = |indices: [i64; 2]| choices(&RULE, &indices, &scores).passed();
        assert!(passes([1, 4]) && passes([4, 2]) && passes([2, 1]));
        assert!(!passes([1, 1]), "twice the same");
        assert!(!passes([1, 3]), "not among the best");
        assert!(!passes([1, 5]) && !passes([-1, 1]), "out of range");
    }

    #[test]
    fn the_order_of_distinct_scores_is_checked() {
        let scores = [1.0, 3.0, 2.5, 2.0, 0.0];
        assert!(choices(&RULE, &[1, 2], &scores).passed());
        assert!(!choices(&RULE, &[2, 1], &scores).passed());
    }

    #[test]
    fn a_choice_along_an_inner_axis_reads_its_own_column() {
        let rule = IndexRule {
            n: 2,
            k: 1,
            inner: 2,
            tie: 0.0,
        };
        // Columns are (1, 4) and (3, 2): the best rows are 1 and 0.
        assert!(choices(&rule, &[1, 0], &[1.0, 3.0, 4.0, 2.0]).passed());
        assert!(!choices(&rule, &[0, 0], &[1.0, 3.0, 4.0, 2.0]).passed());
    }
}
