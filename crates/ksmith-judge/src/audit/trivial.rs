//! Candidates that do nothing must fail, and every input must matter.

use ksmith_task::Tensor;

use super::report::Finding;
use crate::cases::Case;
use crate::gates::judge_outputs;
use crate::judge::{Judge, JudgeError};
use crate::number::{self, Values};

/// Writes one output, by its index, of a trivial candidate for a case among all dev cases.
type Make = fn(&[Case], &Case, usize, &Tensor) -> Vec<f64>;

/// Zeros, a constant, copies of inputs and the mean against the dev cases, without running any code.
pub(crate) fn trivial_candidates(cases: &[Case], judge: &Judge) -> Result<Vec<Finding>, JudgeError> {
    let mut findings = Vec::new();
    let kinds: [(&str, Make); 4] = [
        ("zeros", |_, _, _, tensor| vec![0.0; tensor.len()]),
        ("one", |_, _, _, tensor| vec![1.0; tensor.len()]),
        ("a copy of an input", copy),
        ("the mean of the expectation", mean),
    ];
    for (name, make) in kinds {
        let mut passes = !cases.is_empty();
        for case in cases {
            let outputs: Vec<Vec<u8>> = case
                .spec
                .bound
                .outputs()
                .enumerate()
                .map(|(output, tensor)| encode(tensor, make(cases, case, output, tensor)))
                .collect();
            if judge_outputs(case, &outputs, judge.checkers())?.failed.is_some() {
                passes = false;
                break;
            }
        }
        if passes {
            findings.push(Finding::error(
                "trivial-candidate",
                format!(
                    "a candidate that writes {name} passes every dev case: tighten atol, or choose inputs with larger outputs"
                ),
            ));
        }
    }
    Ok(findings)
}

fn encode(tensor: &Tensor, values: Vec<f64>) -> Vec<u8> {
    let mut bytes = vec![0; tensor.len() * tensor.dtype.bytes()];
    number::encode_reals(tensor.dtype, &values, &mut bytes);
    bytes
}

fn copy(_: &[Case], case: &Case, _: usize, tensor: &Tensor) -> Vec<f64> {
    let like = case
        .spec
        .bound
        .inputs()
        .zip(&case.inputs.values)
        .find(|(input, _)| input.len() == tensor.len());
    match like {
        Some((_, values)) => (0..values.len()).map(|index| values.real(index)).collect(),
        None => vec![f64::NAN; tensor.len()],
    }
}

/// The mean of the expectation. A single value is its own mean, so there it is the mean over all dev cases.
fn mean(cases: &[Case], case: &Case, output: usize, tensor: &Tensor) -> Vec<f64> {
    let over: Vec<&Values> = if tensor.len() == 1 {
        cases
            .iter()
            .filter_map(|case| Some(&case.expected.get(output)?.want))
            .collect()
    } else {
        case.expected
            .get(output)
            .map(|expected| &expected.want)
            .into_iter()
            .collect()
    };
    let all = || {
        over.iter()
            .flat_map(|want| (0..want.len()).map(|index| want.real(index)))
    };
    vec![all().sum::<f64>() / all().count().max(1) as f64; tensor.len()]
}

/// Redraws one input at a time: if the expectations stay within tolerance everywhere, the output ignores it.
pub(crate) fn independent_inputs(cases: &[Case], judge: &mut Judge) -> Result<Vec<Finding>, JudgeError> {
    let mut findings = Vec::new();
    let Some(first) = cases.first() else {
        return Ok(findings);
    };
    let names: Vec<String> = first
        .spec
        .bound
        .inputs()
        .map(|tensor| tensor.name.clone())
        .collect();
    for (input, name) in names.iter().enumerate() {
        let mut matters = false;
        for case in cases {
            let mut other = case.spec.clone();
            other.number += 1000;
            let mut inputs = case.inputs.clone();
            inputs.values[input] = other.draw().values.swap_remove(input);
            if inputs.values[input] == case.inputs.values[input] {
                continue;
            }
            let expected = judge.oracle_expect(&case.spec.bound, &inputs)?;
            let outputs: Vec<Vec<u8>> = case
                .spec
                .bound
                .outputs()
                .zip(&expected)
                .map(|(tensor, expected)| {
                    // An expectation along the candidate's own indices has another length: compare values as they are.
                    let mut bytes = vec![0; expected.want.len() * tensor.dtype.bytes()];
                    number::encode(tensor.dtype, &expected.want, &mut bytes);
                    bytes
                })
                .collect();
            if judge_outputs(case, &outputs, judge.checkers())?.failed.is_some() {
                matters = true;
                break;
            }
        }
        if !matters {
            findings.push(Finding::error(
                "input-without-effect",
                format!("no output depends on input `{name}` on the dev cases: give it a fill that matters, or remove it"),
            ));
        }
    }
    Ok(findings)
}
