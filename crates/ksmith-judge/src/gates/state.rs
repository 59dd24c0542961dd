//! Gate `state`: a sequence cut at a random point gives the outputs and the final state of one call.

use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_task::{Bound, Role, Tensor};
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::judgement::judge;
use super::runner::Setup;
use crate::cases::{Case, CaseSpec, Expected, dev_fills, draw_shape, storage};
use crate::codes::code;
use crate::number::{self, Values};

/// The state passes through its dtype once more than in one call: errors may add up to so many tolerances.
const SLACK: f64 = 4.0;
/// Cuts tried.
const CUTS: u64 = 3;

pub(crate) fn state(scoring: &mut Scoring<'_>) -> GateEnd {
    let plan = scoring.plan();
    let mut stream = plan.decisions("state");
    let first = draw_shape(
        scoring.instance,
        &mut stream,
        64 << 10,
        f64::INFINITY,
        &Default::default(),
    );
    let Some(axis) = first.as_deref().and_then(cut_axis) else {
        return Ok(End::Skipped("the task has no output that is a final state"));
    };
    let mut cuts = 0;
    for number in 0..CUTS * 4 {
        if cuts == CUTS {
            break;
        }
        let limit = if scoring.small { 64 << 10 } else { 512 << 10 };
        let Some(whole) = draw_shape(
            scoring.instance,
            &mut stream,
            limit,
            f64::INFINITY,
            &Default::default(),
        ) else {
            continue;
        };
        let length = whole
            .axes
            .iter()
            .find(|(name, _)| *name == axis)
            .map_or(0, |(_, size)| *size);
        if length < 2 {
            continue;
        }
        let at = 1 + stream.below(length as u64 - 1) as i64;
        let part = |size: i64| {
            let axes = whole
                .axes
                .iter()
                .map(|(name, old)| (name.clone(), if *name == axis { size } else { *old }));
            // Derived axes follow by themselves; sizes that the contract forbids are another cut's turn.
            scoring.instance.bind(&axes.collect()).ok().map(Arc::new)
        };
        let (Some(head), Some(tail)) = (part(at), part(length - at)) else {
            continue;
        };
        cuts += 1;
        let spec = plan.case(&whole, dev_fills(&whole), "state", number);
        let case = scoring.oracle.case(&spec)?;
        let mut runner = step!(scoring.start(Gate::State));
        let early = segment(scoring, &case, &head, 0, number, None)?;
        let (answer, _) = step!(scoring.try_case(Gate::State, &mut runner, &early, Setup::new(&head)));
        let late = segment(
            scoring,
            &case,
            &tail,
            at as usize,
            number,
            Some((&head, &answer.outputs)),
        )?;
        let answer = match runner.call(&late, Setup::new(&tail)) {
            Ok(answer) => answer,
            Err(error) => {
                step!(super::context::failed::<()>(Gate::State, error));
                continue;
            }
        };
        let judgement = judge(&late, &answer.outputs, &scoring.oracle.checkers())?;
        if let Some((output, outcome)) = &judgement.failed
            && (outcome.ratio.is_nan() || outcome.ratio > SLACK)
        {
            return Ok(End::Fail(
                code(Gate::State, "not-resumable"),
                json!({ "output": output }),
            ));
        }
    }
    if cuts == 0 {
        return Ok(End::Skipped("no shape could be cut"));
    }
    Ok(End::Pass(json!({ "cuts": cuts })))
}

fn cut_axis(bound: &Bound) -> Option<String> {
    bound.outputs().find_map(|tensor| match &tensor.role {
        Role::Output(rule) if rule.state_of.is_some() => rule.cut.clone(),
        Role::Output(_) | Role::Input(_) => None,
    })
}

/// One part of a cut sequence: sliced inputs, the given initial states, and the slice of the whole's expectations.
fn segment(
    scoring: &mut Scoring<'_>,
    whole: &Case,
    part: &Arc<Bound>,
    from: usize,
    number: u64,
    states: Option<(&Bound, &[Vec<u8>])>,
) -> Result<Case, crate::judge::JudgeError> {
    let bound = &whole.spec.bound;
    let mut inputs = whole.inputs.clone();
    for ((tensor, target), values) in bound.inputs().zip(part.inputs()).zip(&mut inputs.values) {
        *values = slice(values, &tensor.shape, &target.shape, from);
    }
    if let Some((head, outputs)) = states {
        for (tensor, bytes) in head.outputs().zip(outputs) {
            let Role::Output(rule) = &tensor.role else {
                continue;
            };
            if let Some(input) = rule.state_of {
                inputs.values[input] = number::decode(tensor.dtype, bytes);
            }
        }
    }
    // The first part is judged by the reference itself, the second by the whole: that is the point of the gate.
    let expected = match states {
        None => scoring.oracle.expect(part, &inputs)?,
        Some(_) => bound
            .outputs()
            .zip(part.outputs())
            .zip(&whole.expected)
            .map(|((tensor, target), expected)| slice_expected(expected, tensor, target, from))
            .collect(),
    };
    let spec = CaseSpec {
        bound: Arc::clone(part),
        stream: format!("state part {from}"),
        number,
        ..whole.spec.clone()
    };
    let storage = part
        .inputs()
        .zip(&inputs.values)
        .map(|(tensor, values)| storage(tensor, values))
        .collect();
    Ok(Case {
        spec,
        inputs,
        storage,
        expected,
        resident: None,
    })
}

fn slice_expected(expected: &Expected, whole: &Tensor, part: &Tensor, from: usize) -> Expected {
    Expected {
        want: slice(&expected.want, &whole.shape, &part.shape, from),
        scale: expected.scale.as_ref().map(|scale| {
            match slice(&Values::Real(scale.clone()), &whole.shape, &part.shape, from) {
                Values::Real(scale) => scale,
                Values::Whole(_) => Vec::new(),
            }
        }),
    }
}

/// The part of a row-major tensor along the one dimension in which the sizes differ; the tensor itself if none does.
fn slice(values: &Values, whole: &[usize], part: &[usize], from: usize) -> Values {
    let Some(dimension) = whole.iter().zip(part).position(|(whole, part)| whole != part) else {
        return values.clone();
    };
    let inner: usize = whole[dimension + 1..].iter().product();
    let (stride, take) = (whole[dimension] * inner, part[dimension] * inner);
    let outer: usize = whole[..dimension].iter().product();
    let starts = (0..outer).map(|row| row * stride + from * inner);
    match values {
        Values::Real(values) => Values::Real(
            starts
                .flat_map(|start| values[start..start + take].iter().copied())
                .collect(),
        ),
        Values::Whole(values) => Values::Whole(
            starts
                .flat_map(|start| values[start..start + take].iter().copied())
                .collect(),
        ),
    }
}
