//! The cases of the judge's own probes: every pressure on every input at small hidden shapes, and in turn at the dev
//! shapes and their hidden neighbours.

use std::sync::Arc;

use ksmith_task::{AxisValues, Bound, Tensor};

use super::case::{CaseSpec, InputFill};
use super::plan::{Plan, bind, dev_fills};
use super::pressure::{Pressure, Tier, press};
use super::shapes::{draw_shape, neighbour};
use super::stream::Stream;
use crate::judge::JudgeError;
use crate::number::Values;

/// Storage of the small shapes.
const SMALL: u64 = 64 << 10;
/// Small shapes per scoring; cases take turns, because a new shape costs a new layout.
const SHAPES: usize = 3;

/// One case of the judge's own probes.
#[derive(Debug, Clone)]
pub(crate) struct Pressed {
    pub(crate) spec: CaseSpec,
    pub(crate) tier: Tier,
}

impl Plan<'_> {
    /// The judge's own probes; shapes beyond the small ones have at most `widest` bytes of storage.
    pub(crate) fn pressures(&self, widest: u64) -> Result<Vec<Pressed>, JudgeError> {
        let mut stream = self.decisions("pressures");
        let instance = self.instance();
        let small: Vec<Arc<Bound>> = (0..SHAPES)
            .filter_map(|_| draw_shape(instance, &mut stream, SMALL, f64::INFINITY, &AxisValues::new()))
            .collect();
        let mut wide = Vec::new();
        for workload in instance.workloads(self.backend()) {
            wide.push(bind(instance, &workload.name, &workload.axes)?);
            wide.extend(neighbour(instance, &mut stream, &workload.axes));
        }
        wide.retain(|bound| bound.storage_bytes() <= widest);
        let mut turn = stream.below(wide.len().max(1) as u64) as usize;
        let mut cases = Vec::new();
        for pressure in Pressure::ALL {
            let mut takers = Vec::new();
            let inputs = small
                .first()
                .or(wide.first())
                .map_or(0, |bound| bound.inputs().count());
            for input in 0..inputs {
                if let Some(bound) = turned(&small, cases.len())
                    && let Some(case) = self.pressed(bound, pressure, &[input], cases.len(), &mut stream)
                {
                    cases.push(case);
                    takers.push(input);
                }
            }
            if pressure.fits_all()
                && takers.len() > 1
                && let Some(bound) = turned(&small, cases.len())
            {
                cases.extend(self.pressed(bound, pressure, &takers, cases.len(), &mut stream));
            }
            // Where the shape is known the value must not be: one input, drawn, at the next of the wide shapes.
            if let Some(input) = takers.get(stream.below(takers.len() as u64) as usize)
                && let Some(bound) = turned(&wide, turn)
            {
                turn += 1;
                cases.extend(self.pressed(bound, pressure, &[*input], cases.len(), &mut stream));
            }
        }
        let mut shapes: Vec<Arc<Bound>> = small.first().cloned().into_iter().collect();
        shapes.extend(turned(&wide, turn).cloned());
        cases.extend(self.padded(&shapes, cases.len(), &mut stream));
        cases.extend(self.paired(&shapes, cases.len(), &mut stream)?);
        Ok(cases)
    }

    /// The dev fill with some inputs under pressure; `None` where none of them takes it.
    fn pressed(
        &self,
        bound: &Arc<Bound>,
        pressure: Pressure,
        inputs: &[usize],
        number: usize,
        stream: &mut Stream,
    ) -> Option<Pressed> {
        let mut spec = self.case(bound, dev_fills(bound), "pressed", number as u64);
        let drawn = spec.draw();
        let tensors: Vec<&Tensor> = bound.inputs().collect();
        let mut pressed = false;
        for &input in inputs {
            let (tensor, values) = (tensors.get(input)?, drawn.values.get(input)?);
            let given = match values {
                Values::Real(values) => press(pressure, tensor, values, stream).map(Values::Real),
                Values::Whole(values) => {
                    let reals: Vec<f64> = values.iter().map(|value| *value as f64).collect();
                    press(pressure, tensor, &reals, stream)
                        .map(|values| Values::Whole(values.into_iter().map(|value| value as i64).collect()))
                }
            };
            if let Some(given) = given {
                spec.fills[input] = InputFill::Given(Arc::new(given));
                pressed = true;
            }
        }
        pressed.then_some(Pressed {
            spec,
            tier: pressure.tier(),
        })
    }
}

fn turned(shapes: &[Arc<Bound>], number: usize) -> Option<&Arc<Bound>> {
    shapes.get(number % shapes.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Secret;
    use ksmith_task::Task;

    fn plan_of(task: &str, check: impl FnOnce(&[Pressed])) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tasks")
            .join(task);
        let instance = Task::load(folder).unwrap().instances().remove(0);
        let plan = Plan::hidden(&instance, &Secret::from_bytes([9; 32]));
        check(&plan.pressures(1 << 20).unwrap());
    }

    #[test]
    fn every_input_is_pressed_at_small_shapes_and_every_pressure_at_wide_ones() {
        plan_of("kdattn", |cases| {
            for input in 0..6 {
                let hit = cases
                    .iter()
                    .filter(|case| matches!(case.spec.fills[input], InputFill::Given(_)))
                    .count();
                assert!(hit >= 6, "input {input}: {hit}");
            }
            let wide = cases
                .iter()
                .filter(|case| case.spec.bound.storage_bytes() > SMALL)
                .count();
            assert!(wide >= 6, "{wide}");
            let mut numbers: Vec<u64> = cases.iter().map(|case| case.spec.number).collect();
            numbers.dedup();
            assert_eq!(numbers.len(), cases.len());
        });
    }

    #[test]
    fn values_stay_inside_declared_domains() {
        plan_of("kdattn", |cases| {
            for case in cases {
                let inputs = case.spec.draw();
                for (tensor, values) in case.spec.bound.inputs().zip(&inputs.values) {
                    let ksmith_task::Role::Input(rule) = &tensor.role else {
                        continue;
                    };
                    let Some(domain) = rule.domain else { continue };
                    assert!(
                        (0..values.len()).all(|at| domain.contains(values.real(at))),
                        "{}",
                        tensor.name
                    );
                }
            }
        });
    }

    #[test]
    fn other_secrets_draw_other_values() {
        plan_of("softmax", |cases| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/softmax");
            let instance = Task::load(folder).unwrap().instances().remove(0);
            let other = Plan::hidden(&instance, &Secret::from_bytes([8; 32]));
            let other = other.pressures(1 << 20).unwrap();
            let same = cases
                .iter()
                .zip(&other)
                .filter(|(one, other)| one.spec.bound.axes == other.spec.bound.axes)
                .count();
            assert!(same < cases.len(), "shapes follow the secret");
        });
    }
}
