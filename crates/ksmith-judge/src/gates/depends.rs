//! Gate `depends`: one input element changes at the same address, or two elements or rows change places; outputs follow
//! exactly where the reference does.
//!
//! Guards against memos keyed by pointer, by sampled contents, by sums of them or by call count, and against state
//! between calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_task::contract::Compare;
use ksmith_task::{Backend, Bound, Role, Tensor};
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::judgement::rule;
use super::runner::Setup;
use super::service::service;
use crate::cases::{
    Case, POISONS, Stream, dev_fills, distribution_fills, distributions, draw_shape, storage, takes_pressure,
};
use crate::codes::code;
use crate::number::{self, Values};

/// Draws of a shape, of which the largest is taken.
const LARGEST_OF: usize = 6;
/// Changes per shape.
const CHANGES: usize = 6;
/// Draws of one change before it is given up: some elements have no effect.
const REDRAWS: usize = 12;

pub(crate) fn depends(scoring: &mut Scoring<'_>) -> GateEnd {
    let plan = scoring.plan();
    let mut stream = plan.decisions("depends");
    let mut shapes: Vec<Arc<Bound>> = Vec::new();
    for bytes in [16 << 10, 256 << 10] {
        // The largest of some draws: at tiny shapes a handful of samples is the whole input.
        let drawn = (0..LARGEST_OF).filter_map(|_| {
            draw_shape(
                scoring.instance,
                &mut stream,
                bytes,
                f64::INFINITY,
                &Default::default(),
            )
        });
        shapes.extend(drawn.max_by_key(|bound| bound.storage_bytes()));
    }
    let dev = scoring.dev.iter().map(|(_, case)| &case.spec.bound);
    shapes.extend(
        dev.filter(|bound| bound.storage_bytes() <= 4 << 20)
            .min_by_key(|bound| bound.storage_bytes())
            .cloned(),
    );
    let (mut changes, mut without_effect) = (0, 0);
    let mut by_input: BTreeMap<String, usize> = BTreeMap::new();
    for (number, bound) in shapes.iter().enumerate() {
        let kind = stream.below(distributions(scoring.instance, bound) as u64) as usize;
        let fills = if number == 0 {
            dev_fills(bound)
        } else {
            distribution_fills(scoring.instance, bound, kind, &mut stream)?
        };
        let case = scoring
            .oracle
            .case(&plan.case(bound, fills, "depends", number as u64))?;
        let mut runner = step!(scoring.start(Gate::Depends));
        let setup = Setup::new(bound);
        let (answer, _) = step!(scoring.try_case(Gate::Depends, &mut runner, &case, setup));
        let mut before = (case, answer.outputs);
        for change in 0..CHANGES {
            let Some((input, changed)) = redraw(scoring, &before.0, change, &mut stream)? else {
                without_effect += 1;
                continue;
            };
            changes += 1;
            if let Some(tensor) = bound.tensors.get(input) {
                *by_input.entry(tensor.name.clone()).or_default() += 1;
            }
            // Every other change keeps the earlier answer in the outputs: a kernel that does nothing would pass as
            // stale only where nothing changes, and is caught where something does.
            let poison = (change % 2 == 0).then_some(POISONS[change / 2 % 2]);
            let setup = setup.poison(poison.unwrap_or(POISONS[0]));
            let in_place = bound.tensors.iter().any(|tensor| tensor.inplace.is_some());
            if in_place {
                // The call has overwritten its input: it gets the whole new one.
                for (index, bytes) in changed.storage.iter().enumerate() {
                    if let Err(error) = runner.rewrite(bound, index, bytes) {
                        step!(super::context::failed::<()>(Gate::Depends, error));
                    }
                }
            }
            let gap_poison = poison.unwrap_or_else(|| runner.last_poison());
            let answer = match runner.again(
                bound,
                input,
                &changed.storage[input],
                poison,
                setup.poison(gap_poison),
            ) {
                Ok(answer) => answer,
                Err(error) => {
                    step!(super::context::failed::<()>(Gate::Depends, error));
                    continue;
                }
            };
            if let Some(end) = effect(&before.0, &before.1, &changed, &answer.outputs) {
                return Ok(end);
            }
            let (answer, _) = step!(scoring.judge(Gate::Depends, &changed, answer));
            before = (changed, answer.outputs);
        }
    }
    // On a device a call costs several times as much, and workers there are younger for it.
    let calls = match scoring.backend {
        Backend::Cpu => step!(service(scoring)),
        Backend::Cuda => 0,
    };
    if changes == 0 {
        return Ok(End::Skipped("no change of one element moves an output clearly"));
    }
    Ok(End::Pass(json!({
        "shapes": shapes.len(), "changes": changes, "by_input": by_input, "without_effect": without_effect,
        "service": calls,
    })))
}

/// Changes one element of one input, or the places of two of its elements or rows, so that the reference's outputs change
/// somewhere; `None` if that does not succeed.
fn redraw(
    scoring: &mut Scoring<'_>,
    case: &Case,
    change: usize,
    stream: &mut Stream,
) -> Result<Option<(usize, Case)>, crate::judge::JudgeError> {
    let bound = &case.spec.bound;
    let inputs: Vec<(usize, &Tensor)> = bound
        .inputs()
        .enumerate()
        .filter(|(_, tensor)| !tensor.is_empty())
        .collect();
    if inputs.is_empty() {
        return Ok(None);
    }
    for attempt in 0..REDRAWS {
        let (input, tensor) = inputs[(change + attempt) % inputs.len()];
        let element = stream.below(tensor.len() as u64) as usize;
        // Every second pair of changes keeps the input's values and changes their places: sums of them stay equal.
        let values = match change / 2 % 2 {
            1 if attempt < REDRAWS / 2 => {
                exchanged(case, input, tensor, (change + attempt).is_multiple_of(2), stream)
            }
            _ => replaced(case, input, tensor, element, stream),
        };
        let Some(values) = values else { continue };
        if let Some(next) = moved(scoring, case, input, values)? {
            return Ok(Some((input, next)));
        }
    }
    Ok(None)
}

/// The case with one element of this input changed so that the reference's outputs move clearly; `None` if none of some
/// draws does that.
pub(super) fn changed(
    scoring: &mut Scoring<'_>,
    case: &Case,
    input: usize,
    stream: &mut Stream,
) -> Result<Option<Case>, crate::judge::JudgeError> {
    let bound = Arc::clone(&case.spec.bound);
    let Some(tensor) = bound.inputs().nth(input).filter(|tensor| !tensor.is_empty()) else {
        return Ok(None);
    };
    for _ in 0..REDRAWS {
        let element = stream.below(tensor.len() as u64) as usize;
        let Some(values) = replaced(case, input, tensor, element, stream) else {
            continue;
        };
        if let Some(next) = moved(scoring, case, input, values)? {
            return Ok(Some(next));
        }
    }
    Ok(None)
}

/// The case with other values of one input; `None` where the reference's outputs do not follow clearly.
fn moved(
    scoring: &mut Scoring<'_>,
    case: &Case,
    input: usize,
    values: Values,
) -> Result<Option<Case>, crate::judge::JudgeError> {
    let bound = &case.spec.bound;
    let mut next = case.clone();
    next.inputs.values[input] = values;
    next.expected = scoring.oracle.expect(bound, &next.inputs)?;
    if !follows(case, &next) {
        return Ok(None);
    }
    if let Some(tensor) = bound.inputs().nth(input) {
        next.storage[input] = storage(tensor, &next.inputs.values[input]);
    }
    Ok(Some(next))
}

/// Takes the new value of one element from elsewhere in the same tensor or by moving it, inside the domain.
fn replaced(
    case: &Case,
    input: usize,
    tensor: &Tensor,
    element: usize,
    stream: &mut Stream,
) -> Option<Values> {
    let Role::Input(input_rule) = &tensor.role else {
        return None;
    };
    let mut values = case.inputs.values[input].clone();
    let other = stream.below(tensor.len() as u64) as usize;
    match &mut values {
        Values::Real(values) => {
            let old = values[element];
            let moved = match stream.below(3) {
                0 => values[other],
                1 => -old,
                _ => old + (1.0 + old.abs()) * (stream.unit() + 0.5),
            };
            let moved = number::round(tensor.dtype, moved);
            if moved == old
                || !moved.is_finite()
                || input_rule.domain.is_some_and(|domain| !domain.contains(moved))
            {
                return None;
            }
            values[element] = moved;
        }
        // Indices and offsets have structure: only a swap with another element keeps them valid.
        Values::Whole(values) => {
            if values[element] == values[other] {
                return None;
            }
            values.swap(element, other);
            if tensor.name.contains("cu_") || values.is_sorted() {
                return None;
            }
        }
    }
    Some(values)
}

/// Two elements, or two rows, of a float input change places; `None` where they are equal or their order has structure.
fn exchanged(case: &Case, input: usize, tensor: &Tensor, rows: bool, stream: &mut Stream) -> Option<Values> {
    let Role::Input(input_rule) = &tensor.role else {
        return None;
    };
    let mut values = case.inputs.values[input].clone();
    let Values::Real(reals) = &mut values else {
        return None;
    };
    if !takes_pressure(&input_rule.fill) {
        return None;
    }
    let length = match tensor.shape.last() {
        Some(row) if rows && tensor.shape.len() > 1 => (*row).max(1),
        _ => 1,
    };
    let count = (reals.len() / length) as u64;
    let (one, other) = (stream.below(count) as usize, stream.below(count) as usize);
    let mut moved = false;
    for at in 0..length {
        let (one, other) = (one * length + at, other * length + at);
        moved |= reals[one] != reals[other];
        reals.swap(one, other);
    }
    moved.then_some(values)
}

/// Whether the reference's outputs differ clearly (by more than twice the tolerance) somewhere.
fn follows(before: &Case, after: &Case) -> bool {
    before
        .spec
        .bound
        .outputs()
        .zip(before.expected.iter().zip(&after.expected))
        .any(|(tensor, (old, new))| {
            let rule = rule(tensor);
            (0..old.want.len()).any(|index| {
                let (a, b) = (old.want.real(index), new.want.real(index));
                let scale = |expected: &crate::cases::Expected| {
                    expected.scale.as_ref().map_or(0.0, |scale| scale[index])
                };
                let bound = rule.bound(a, scale(old)).max(rule.bound(b, scale(new)));
                (a - b).abs() > 2.0 * bound
            })
        })
}

/// Whether more than one answer is right, so that a kernel need not change its own when the reference does: chosen
/// indices among ties, what is read at them, and what a checker accepts. The comparison that follows still finds a
/// stale answer that is wrong.
fn several_answers(tensor: &Tensor) -> bool {
    match &tensor.role {
        Role::Input(_) => false,
        Role::Output(output) => {
            output.along.is_some()
                || matches!(output.compare, Compare::Index { .. } | Compare::Checker { .. })
        }
    }
}

/// Compares what changed in the outputs with what changed in the reference.
fn effect(before: &Case, old: &[Vec<u8>], after: &Case, new: &[Vec<u8>]) -> Option<End> {
    let (mut wanted, mut followed) = (0usize, 0usize);
    for (index, tensor) in before.spec.bound.outputs().enumerate() {
        if several_answers(tensor) {
            continue;
        }
        let rule = rule(tensor);
        let width = tensor.dtype.bytes();
        let (want_old, want_new) = (&before.expected[index], &after.expected[index]);
        if want_old.want.len() * width != old[index].len() {
            continue;
        }
        for element in 0..want_old.want.len() {
            let (a, b) = (want_old.want.real(element), want_new.want.real(element));
            let scale = |expected: &crate::cases::Expected| {
                expected.scale.as_ref().map_or(0.0, |scale| scale[element])
            };
            let bound = rule.bound(a, scale(want_old)).max(rule.bound(b, scale(want_new)));
            let range = element * width..(element + 1) * width;
            let same = old[index][range.clone()] == new[index][range.clone()];
            if (a - b).abs() > 2.0 * bound {
                wanted += 1;
                followed += usize::from(!same);
            } else if a.to_bits() == b.to_bits() && !same {
                // Rounding may differ where sums are shared; more than the tolerance may not.
                let mut values = [0.0; 2];
                number::decode_reals(tensor.dtype, &old[index][range.clone()], &mut values[..1]);
                number::decode_reals(tensor.dtype, &new[index][range], &mut values[1..]);
                let moved = (values[0] - values[1]).abs();
                if tensor.dtype.is_float() && moved > 2.0 * bound {
                    let class = "an output moved that the reference leaves bit-equal";
                    return Some(End::Fail(
                        code(Gate::Depends, "stray-effect"),
                        json!({ "class": class }),
                    ));
                }
            }
        }
    }
    let class = if followed == 0 {
        "no output followed the change"
    } else {
        "some outputs followed the change, some did not"
    };
    (followed < wanted).then(|| End::Fail(code(Gate::Depends, "stale"), json!({ "class": class })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Key, Plan, Secret};
    use ksmith_task::Task;

    #[test]
    fn exchanges_keep_the_values_and_change_their_places() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/attention");
        let instance = Task::load(folder).unwrap().instances().remove(0);
        let plan = Plan::hidden(&instance, &Secret::from_bytes([9; 32]));
        let axes = [("heads", 2), ("seq", 16), ("dim", 32)].map(|(name, size)| (name.to_owned(), size));
        let bound = Arc::new(instance.bind(&axes.into_iter().collect()).unwrap());
        let spec = plan.case(&bound, dev_fills(&bound), "test", 0);
        let case = Case {
            inputs: spec.draw(),
            spec,
            storage: Vec::new(),
            expected: Vec::new(),
            resident: None,
        };
        let mut stream = Key::new(&Secret::dev(), "depends", 0, "exchange").block(0);
        let tensor = bound.inputs().next().unwrap();
        let reals = |values: &Values| (0..values.len()).map(|at| values.real(at)).collect::<Vec<f64>>();
        let before = reals(&case.inputs.values[0]);
        let sorted = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        for (rows, places) in [(false, 2), (true, 64)] {
            let after = (0..REDRAWS).find_map(|_| exchanged(&case, 0, tensor, rows, &mut stream));
            let after = reals(&after.unwrap());
            let moved = before.iter().zip(&after).filter(|(old, new)| old != new).count();
            assert_eq!(moved, places);
            assert_eq!(sorted(before.clone()), sorted(after));
        }
    }
}
