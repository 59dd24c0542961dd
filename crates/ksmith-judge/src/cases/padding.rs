//! Padding: every float input is zero over the same stretch of one axis, as a batch is where its sequences end early.
//!
//! A kernel that takes such a stretch for empty and answers zero there is wrong wherever its neighbours reach into it.

use std::sync::Arc;

use ksmith_task::contract::AxisKind;
use ksmith_task::{Bound, Role, Tensor};

use super::case::InputFill;
use super::paired::seen_before;
use super::plan::{Plan, dev_fills};
use super::pressed::Pressed;
use super::pressure::{Tier, holds, takes_pressure};
use super::stream::Stream;
use crate::number::Values;

impl Plan<'_> {
    /// For each free axis of at least two a case with a stretch of zeros: to the axis' end, or anywhere, in turn.
    pub(super) fn padded(&self, shapes: &[Arc<Bound>], from: usize, stream: &mut Stream) -> Vec<Pressed> {
        let free = |name: &str| {
            let axes = &self.instance().task().contract().axes;
            axes.iter()
                .any(|axis| axis.name == name && matches!(axis.kind, AxisKind::Range { .. }))
        };
        let mut cases: Vec<Pressed> = Vec::new();
        for (turn, bound) in shapes.iter().enumerate() {
            for (at, (name, size)) in bound.axes.iter().enumerate() {
                if *size < 2 || !free(name) || seen_before(bound, name, *size) {
                    continue;
                }
                let stretch = stretch(*size as usize, (turn + at) % 2 == 0, stream);
                cases.extend(self.with_zeros(bound, *size as usize, &stretch, from + cases.len()));
            }
        }
        cases
    }

    fn with_zeros(
        &self,
        bound: &Arc<Bound>,
        size: usize,
        stretch: &std::ops::Range<usize>,
        number: usize,
    ) -> Option<Pressed> {
        let mut spec = self.case(bound, dev_fills(bound), "padded", number as u64);
        let drawn = spec.draw();
        let mut zeroed = false;
        for (input, (tensor, values)) in bound.inputs().zip(&drawn.values).enumerate() {
            let Values::Real(values) = values else { continue };
            let Some(axis) = tensor.shape.iter().position(|length| *length == size) else {
                continue;
            };
            if !takes_zeros(tensor) || values.len() != tensor.len() {
                continue;
            }
            let below: usize = tensor.shape.iter().skip(axis + 1).product();
            let mut given = values.clone();
            for (at, value) in given.iter_mut().enumerate() {
                if stretch.contains(&(at / below % size)) {
                    *value = 0.0;
                }
            }
            spec.fills[input] = InputFill::Given(Arc::new(Values::Real(given)));
            zeroed = true;
        }
        zeroed.then_some(Pressed {
            spec,
            tier: Tier::Plain,
        })
    }
}

/// Between one element and half of the axis; never all of it.
fn stretch(size: usize, to_the_end: bool, stream: &mut Stream) -> std::ops::Range<usize> {
    let length = 1 + stream.below((size / 2) as u64) as usize;
    let start = if to_the_end {
        size - length
    } else {
        stream.below((size - length + 1) as u64) as usize
    };
    start..start + length
}

fn takes_zeros(tensor: &Tensor) -> bool {
    let Role::Input(rule) = &tensor.role else {
        return false;
    };
    tensor.dtype.is_float() && takes_pressure(&rule.fill) && holds(rule.domain, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Secret;
    use ksmith_task::Task;

    #[test]
    fn the_same_stretch_of_every_input_is_zero_and_not_all_of_it() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/attention");
        let instance = Task::load(folder).unwrap().instances().remove(0);
        let plan = Plan::hidden(&instance, &Secret::from_bytes([9; 32]));
        let padded: Vec<_> = plan
            .pressures(1 << 20)
            .unwrap()
            .into_iter()
            .filter(|case| case.spec.stream == "padded")
            .collect();
        assert!(padded.len() >= 4, "{}", padded.len());
        for case in padded {
            let inputs = case.spec.draw();
            let zeros: Vec<Vec<usize>> = inputs
                .values
                .iter()
                .map(|values| (0..values.len()).filter(|at| values.real(*at) == 0.0).collect())
                .collect();
            assert!(!zeros[0].is_empty() && zeros[0].len() < inputs.values[0].len());
            assert!(zeros.iter().all(|places| *places == zeros[0]));
        }
    }
}
