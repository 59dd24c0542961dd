//! The elementwise comparison: decoded in blocks, a branch-free loop that the compiler vectorises, two threads.

use ksmith_task::DType;
use rayon::prelude::*;

use super::rule::{Cause, Outcome, Rule, Worst};
use crate::number;

/// Elements decoded at once: small enough for the first-level cache.
const BLOCK: usize = 1024;
/// Elements per parallel task.
const PART: usize = 64 * BLOCK;

/// Compares a contiguous float output, given as bytes, with its expectation.
///
/// `scale` is the reference's extra output; without one its part of the bound is zero. A length that does not match is
/// a failure of every element, never a silent truncation.
pub fn compare(rule: &Rule, bytes: &[u8], want: &[f64], scale: Option<&[f64]>) -> Outcome {
    let width = rule.dtype.bytes();
    if bytes.len() != want.len() * width || scale.is_some_and(|scale| scale.len() != want.len()) {
        return Outcome {
            failures: want.len().max(1),
            cause: Some(Cause::Value),
            worst: None,
            ratio: f64::INFINITY,
        };
    }
    let part = |number: usize, bytes: &[u8]| {
        let start = number * PART;
        let want = &want[start..(start + PART).min(want.len())];
        let scale = scale.map(|scale| &scale[start..start + want.len()]);
        compare_part(rule, start, bytes, want, scale)
    };
    if want.len() <= PART {
        return part(0, bytes);
    }
    bytes
        .par_chunks(PART * width)
        .enumerate()
        .map(|(number, bytes)| part(number, bytes))
        .reduce(|| Outcome::PASS, Outcome::join)
}

fn compare_part(rule: &Rule, start: usize, bytes: &[u8], want: &[f64], scale: Option<&[f64]>) -> Outcome {
    let width = rule.dtype.bytes();
    let mut decoded = [0.0f64; BLOCK];
    let no_scale = [0.0f64; BLOCK];
    let mut outcome = Outcome::PASS;
    for (number, (bytes, want)) in bytes.chunks(BLOCK * width).zip(want.chunks(BLOCK)).enumerate() {
        let first = number * BLOCK;
        let out = &mut decoded[..want.len()];
        number::decode_reals(rule.dtype, bytes, out);
        let scale = match scale {
            Some(scale) => &scale[first..first + want.len()],
            None => &no_scale[..want.len()],
        };
        let (bad, ratio) = ordinary(rule, out, want, scale);
        if bad > 0 {
            outcome = outcome.join(special(rule, start + first, out, want, scale));
        } else if ratio > outcome.ratio {
            // The place is looked up only when a block sets a new record: rare after the first blocks.
            let place = (0..want.len()).find(|&i| {
                let bound = rule.bound(want[i], scale[i]);
                (out[i] - want[i]).abs() / bound >= ratio
            });
            outcome.ratio = ratio;
            if outcome.cause.is_none() {
                outcome.worst = place.map(|i| worst(rule, start + first + i, out[i], want[i], scale[i]));
            }
        }
    }
    outcome
}

/// Counts elements that are not plainly right, and finds the largest error over bound.
///
/// Plainly right: within the bound, and the expectation so far inside the range that no overflow rule can matter.
#[inline]
fn ordinary(rule: &Rule, out: &[f64], want: &[f64], scale: &[f64]) -> (u32, f64) {
    let inside = number::largest(rule.dtype) * 0.5;
    let exact = rule.exact;
    if exact {
        return (1, 0.0);
    }
    let (atol, rtol, ctol) = (rule.atol, rule.rtol, rule.ctol);
    let mut bad = [0u64; 8];
    let mut ratio = [0.0f64; 8];
    let split = want.len() / 8 * 8;
    let lanes = out[..split].as_chunks::<8>().0.iter();
    for ((out, want), scale) in lanes
        .zip(want[..split].as_chunks::<8>().0)
        .zip(scale[..split].as_chunks::<8>().0)
    {
        for lane in 0..8 {
            let error = (out[lane] - want[lane]).abs();
            let bound = atol + rtol * want[lane].abs() + ctol * scale[lane];
            let right = (error <= bound) & (want[lane].abs() <= inside);
            bad[lane] += u64::from(!right);
            let part = error / bound;
            ratio[lane] = if part > ratio[lane] { part } else { ratio[lane] };
        }
    }
    let mut count: u64 = bad.iter().sum();
    let mut most = ratio.iter().fold(0.0f64, |most, part| most.max(*part));
    for i in split..want.len() {
        let error = (out[i] - want[i]).abs();
        let bound = atol + rtol * want[i].abs() + ctol * scale[i];
        count += u64::from(!((error <= bound) & (want[i].abs() <= inside)));
        let part = error / bound;
        most = if part > most { part } else { most };
    }
    (count.min(u64::from(u32::MAX)) as u32, most)
}

/// The slow path of a block: every element with all special cases.
#[cold]
fn special(rule: &Rule, start: usize, out: &[f64], want: &[f64], scale: &[f64]) -> Outcome {
    let mut outcome = Outcome::PASS;
    for i in 0..want.len() {
        match rule.element(out[i], want[i], scale[i]) {
            Ok(()) => {
                let bound = rule.bound(want[i], scale[i]);
                let ratio = (out[i] - want[i]).abs() / bound;
                if ratio.is_finite() && ratio > outcome.ratio {
                    outcome.ratio = ratio;
                    if outcome.cause.is_none() {
                        outcome.worst = Some(worst(rule, start + i, out[i], want[i], scale[i]));
                    }
                }
            }
            Err(cause) => {
                if outcome.cause.is_none() {
                    outcome.cause = Some(cause);
                    outcome.worst = Some(worst(rule, start + i, out[i], want[i], scale[i]));
                }
                outcome.failures += 1;
                let ratio = (out[i] - want[i]).abs() / rule.bound(want[i], scale[i]);
                outcome.ratio = if ratio.is_nan() {
                    f64::INFINITY
                } else {
                    outcome.ratio.max(ratio)
                };
            }
        }
    }
    outcome
}

fn worst(rule: &Rule, index: usize, got: f64, want: f64, scale: f64) -> Worst {
    Worst {
        index,
        got,
        want,
        bound: rule.bound(want, scale),
    }
}

/// Compares integers or bools in their own type; with `slack` against a real expectation (`rounded`).
pub fn compare_whole(
    dtype: DType,
    bytes: &[u8],
    want: &crate::number::Values,
    slack: Option<f64>,
) -> Outcome {
    let width = dtype.bytes();
    if bytes.len() != want.len() * width {
        return Outcome {
            failures: want.len().max(1),
            cause: Some(Cause::Integer),
            worst: None,
            ratio: f64::INFINITY,
        };
    }
    let mut got = vec![0i64; want.len()];
    number::decode_whole(dtype, bytes, &mut got);
    let mut outcome = Outcome::PASS;
    for (index, got) in got.iter().enumerate() {
        let right = match (want, slack) {
            (number::Values::Whole(want), None) => want[index] == *got,
            (number::Values::Whole(want), Some(slack)) => (want[index].abs_diff(*got)) as f64 <= slack,
            (number::Values::Real(want), None) => number::round_whole(dtype, want[index]) == *got,
            (number::Values::Real(want), Some(slack)) => {
                let (least, most) = number::whole_range(dtype);
                // The expectation saturates like the output does; NaN has no integer and never passes.
                let want = want[index];
                let clamped = if want.is_nan() {
                    want
                } else {
                    want.clamp(least as f64, most as f64)
                };
                (*got as f64 - clamped).abs() <= slack
            }
        };
        if !right {
            outcome.failures += 1;
            if outcome.cause.is_none() {
                outcome.cause = Some(Cause::Integer);
                outcome.worst = Some(Worst {
                    index,
                    got: *got as f64,
                    want: want.real(index),
                    bound: slack.unwrap_or(0.0),
                });
                outcome.ratio = f64::INFINITY;
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Overflow;
    use crate::number::Values;
    use proptest::prelude::*;

    fn rule(dtype: DType) -> Rule {
        Rule {
            dtype,
            atol: 1e-6,
            rtol: 1e-3,
            ctol: 0.0,
            overflow: Overflow::Inf,
            exact: false,
        }
    }

    fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * dtype.bytes()];
        number::encode_reals(dtype, values, &mut bytes);
        bytes
    }

    #[test]
    fn a_single_wrong_element_among_a_million_is_found_and_named() {
        let want: Vec<f64> = (0..1_000_003).map(|i| f64::from(i % 1000) + 1.0).collect();
        let mut out = want.clone();
        out[777_777] += 1e3;
        let outcome = compare(&rule(DType::F32), &bytes(DType::F32, &out), &want, None);
        assert_eq!(outcome.failures, 1);
        assert_eq!(outcome.worst.map(|worst| worst.index), Some(777_777));
        assert_eq!(outcome.cause, Some(Cause::Value));
    }

    #[test]
    fn nan_is_no_wildcard_on_either_side() {
        let rule = rule(DType::F32);
        let judge = |out: f64, want: f64| compare(&rule, &bytes(DType::F32, &[out]), &[want], None).cause;
        assert_eq!(judge(f64::NAN, f64::NAN), None);
        assert_eq!(judge(1.0, f64::NAN), Some(Cause::NonFinite));
        assert_eq!(judge(f64::NAN, 1.0), Some(Cause::NonFinite));
        assert_eq!(judge(f64::INFINITY, 1.0), Some(Cause::NonFinite));
        assert_eq!(judge(1.0, f64::INFINITY), Some(Cause::NonFinite));
        assert_eq!(judge(f64::NEG_INFINITY, f64::INFINITY), Some(Cause::NonFinite));
        assert_eq!(judge(f64::INFINITY, f64::INFINITY), None);
    }

    #[test]
    fn overflow_follows_the_contract_and_both_sides_of_the_edge_are_honest() {
        let judge = |overflow, out: f64, want: f64| {
            let rule = Rule {
                overflow,
                ..rule(DType::F16)
            };
            compare(&rule, &bytes(DType::F16, &[out]), &[want], None).passed()
        };
        assert!(judge(Overflow::Inf, f64::INFINITY, 1e6));
        assert!(!judge(Overflow::Inf, 65504.0, 1e6));
        assert!(judge(Overflow::Saturate, -65504.0, -1e6));
        assert!(!judge(Overflow::Saturate, f64::NEG_INFINITY, -1e6));
        assert!(judge(Overflow::Nan, f64::NAN, 1e6));
        assert!(judge(Overflow::Inf, 65504.0, 65521.0));
        assert!(judge(Overflow::Inf, f64::INFINITY, 65519.0));
        assert!(!judge(Overflow::Inf, f64::INFINITY, 60000.0));
    }

    #[test]
    fn a_short_output_is_a_failure_and_not_a_shorter_comparison() {
        assert!(!compare(&rule(DType::F32), &[], &[1.0], None).passed());
        assert!(!compare_whole(DType::I32, &[0; 4], &Values::Whole(vec![0, 0]), None).passed());
    }

    #[test]
    fn integers_are_exact_and_rounded_integers_have_half_a_step() {
        let want = Values::Real(vec![2.5, -3.2, 200.0, f64::NAN]);
        let outcome = compare_whole(DType::I8, &[3, (-3i8) as u8, 127, 0], &want, Some(0.5));
        assert_eq!(
            (outcome.failures, outcome.worst.map(|worst| worst.index)),
            (1, Some(3))
        );
        assert!(!compare_whole(DType::Bool, &[2], &Values::Whole(vec![1]), None).passed());
    }

    proptest! {
        #[test]
        fn the_fast_loop_agrees_with_the_rule_element_by_element(
            pairs in prop::collection::vec((any::<f32>(), -3.0f64..3.0), 1..400),
            scale in 0.0f64..10.0,
        ) {
            let rule = Rule { ctol: 1e-4, ..rule(DType::F32) };
            let want: Vec<f64> = pairs.iter().map(|(want, _)| f64::from(*want)).collect();
            let out: Vec<f64> = pairs
                .iter()
                .map(|(want, push)| {
                    let want = f64::from(*want);
                    number::round(DType::F32, want + push * rule.bound(want, scale))
                })
                .collect();
            let scales = vec![scale; want.len()];
            let outcome = compare(&rule, &bytes(DType::F32, &out), &want, Some(&scales));
            let failures = (0..want.len()).filter(|&i| rule.element(out[i], want[i], scale).is_err()).count();
            prop_assert_eq!(outcome.failures, failures);
        }
    }
}
