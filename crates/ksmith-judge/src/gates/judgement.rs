//! One answer against one case's expectations, all outputs.

use ksmith_task::contract::{Compare, Overflow as TaskOverflow};
use ksmith_task::{Bound, Role, Tensor};

use crate::cases::{Case, POISONS};
use crate::compare::{Cause, IndexRule, Outcome, Overflow, Rule, along, choices, compare, compare_whole};
use crate::number::{self, Values};
use crate::reference::{Checkers, ReferenceError};

/// How an answer compares.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    /// The first output that fails, with its outcome.
    pub(crate) failed: Option<(String, Outcome)>,
    /// Largest error over bound, over all float outputs.
    pub(crate) ratio: f64,
}

/// The rule of one output tensor.
pub(crate) fn rule(tensor: &Tensor) -> Rule {
    let Role::Output(output) = &tensor.role else {
        return Rule {
            dtype: tensor.dtype,
            atol: 0.0,
            rtol: 0.0,
            ctol: 0.0,
            overflow: Overflow::Inf,
            exact: true,
        };
    };
    Rule {
        dtype: tensor.dtype,
        // A rounded output follows a real reference only when that moves by more than both roundings may hide.
        atol: match output.compare {
            Compare::Rounded { tie } => 0.5 + tie,
            _ => output.tolerance.atol,
        },
        rtol: output.tolerance.rtol,
        ctol: output.tolerance.ctol,
        overflow: match output.overflow {
            TaskOverflow::Inf => Overflow::Inf,
            TaskOverflow::Saturate => Overflow::Saturate,
            TaskOverflow::Nan => Overflow::Nan,
        },
        exact: matches!(output.compare, Compare::Exact),
    }
}

/// Judges the row-major element bytes of all outputs.
pub(crate) fn judge(
    case: &Case,
    outputs: &[Vec<u8>],
    checkers: &Checkers,
) -> Result<Judgement, ReferenceError> {
    let bound = &case.spec.bound;
    let mut judgement = Judgement {
        failed: None,
        ratio: 0.0,
    };
    for (index, tensor) in bound.outputs().enumerate() {
        let mut outcome = judge_output(case, bound, index, tensor, outputs, checkers)?;
        if !outcome.passed() && still_poisoned(tensor, outputs.get(index), &outcome) {
            outcome.cause = Some(Cause::Unwritten);
        }
        if tensor.dtype.is_float() && outcome.ratio.is_finite() {
            judgement.ratio = judgement.ratio.max(outcome.ratio);
        }
        if !outcome.passed() && judgement.failed.is_none() {
            judgement.failed = Some((tensor.name.clone(), outcome));
        }
    }
    Ok(judgement)
}

/// Whether the first wrong element of a float output still holds the judge's poison, bit for bit: no computation gives
/// that pattern by chance. Integers and 8-bit floats have too few bits to tell.
fn still_poisoned(tensor: &Tensor, bytes: Option<&Vec<u8>>, outcome: &Outcome) -> bool {
    let width = tensor.dtype.bytes();
    let element = outcome
        .worst
        .zip(bytes)
        .and_then(|(worst, bytes)| bytes.get(worst.index * width..(worst.index + 1) * width));
    tensor.dtype.is_float()
        && width > 1
        && element.is_some_and(|element| {
            POISONS
                .iter()
                .any(|poison| element.iter().all(|byte| byte == poison))
        })
}

fn judge_output(
    case: &Case,
    bound: &Bound,
    index: usize,
    tensor: &Tensor,
    outputs: &[Vec<u8>],
    checkers: &Checkers,
) -> Result<Outcome, ReferenceError> {
    let missing = Outcome {
        failures: 1,
        cause: Some(Cause::Unwritten),
        worst: None,
        ratio: f64::INFINITY,
    };
    let (Some(bytes), Some(expected), Role::Output(output)) =
        (outputs.get(index), case.expected.get(index), &tensor.role)
    else {
        return Ok(missing);
    };
    if let Some(chooser) = output.along
        && let Some((place, index_rule)) = index_rule(case, bound, chooser)
        && let (Some(chosen), Values::Real(want)) = (outputs.get(place), &expected.want)
    {
        let index_dtype = bound.tensors[chooser].dtype;
        let mut indices = vec![0; chosen.len() / index_dtype.bytes()];
        number::decode_whole(index_dtype, chosen, &mut indices);
        let mut values = vec![0.0; bytes.len() / tensor.dtype.bytes()];
        number::decode_reals(tensor.dtype, bytes, &mut values);
        return Ok(along(
            &rule(tensor),
            &index_rule.0,
            &indices,
            &values,
            want,
            expected.scale.as_deref(),
        ));
    }
    let outcome = match &output.compare {
        Compare::Rounded { tie } => compare_whole(tensor.dtype, bytes, &expected.want, Some(0.5 + tie)),
        Compare::Index { .. } => {
            let tensor_index = bound.inputs().count() + index;
            match index_rule(case, bound, tensor_index) {
                Some((_, (rule, scores))) => {
                    let mut indices = vec![0; bytes.len() / tensor.dtype.bytes()];
                    number::decode_whole(tensor.dtype, bytes, &mut indices);
                    choices(&rule, &indices, &scores)
                }
                None => missing,
            }
        }
        Compare::Checker { .. } => {
            let decoded: Vec<Values> = bound
                .outputs()
                .zip(outputs)
                .map(|(tensor, bytes)| number::decode(tensor.dtype, bytes))
                .collect();
            let ratios = checkers.check(case, index, &decoded)?;
            // A ratio that is NaN, or a missing ratio, never passes.
            let bad = ratios
                .iter()
                .filter(|ratio| ratio.is_nan() || **ratio > 1.0)
                .count();
            let short = decoded.get(index).map_or(1, Values::len).abs_diff(ratios.len());
            Outcome {
                failures: bad + short,
                cause: (bad + short > 0).then_some(Cause::Checker),
                worst: None,
                ratio: ratios.iter().fold(0.0, |most: f64, ratio| most.max(*ratio)),
            }
        }
        _ => match &expected.want {
            Values::Real(want) if tensor.dtype.is_float() => {
                compare(&rule(tensor), bytes, want, expected.scale.as_deref())
            }
            want => compare_whole(tensor.dtype, bytes, want, None),
        },
    };
    Ok(outcome)
}

/// The choice rule of an index output (by its place in `tensors`), its place among the outputs, and the scores.
fn index_rule(case: &Case, bound: &Bound, tensor: usize) -> Option<(usize, (IndexRule, Vec<f64>))> {
    let inputs = bound.inputs().count();
    let Role::Output(output) = &bound.tensors.get(tensor)?.role else {
        return None;
    };
    let Compare::Index { of, axis, k, tie } = &output.compare else {
        return None;
    };
    let (place, source) = bound
        .tensors
        .iter()
        .enumerate()
        .find(|(_, tensor)| tensor.name == *of)?;
    let scores = if place < inputs {
        case.inputs.values.get(place)?
    } else {
        &case.expected.get(place - inputs)?.want
    };
    let scores = match scores {
        Values::Real(scores) => scores.clone(),
        Values::Whole(scores) => scores.iter().map(|score| *score as f64).collect(),
    };
    let rule = IndexRule {
        n: *source.shape.get(*axis)?,
        k: *k as usize,
        inner: source.shape[axis + 1..].iter().product(),
        tie: *tie,
    };
    Some((tensor - inputs, (rule, scores)))
}
