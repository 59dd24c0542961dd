//! The cases of the judge's own probes: every pressure on every input at small hidden shapes, and in turn at the dev
//! shapes and their hidden neighbours.

use std::sync::Arc;

use ksmith_task::{AxisValues, Bound, Instance, Tensor};

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

/// Storage of the shape with long rows.
const LONG: u64 = 256 << 10;
/// Draws of it, and the length of a row beyond which a longer one is no better.
const LONG_DRAWS: usize = 32;
const LONG_ROW: usize = 2048;
/// Operations of the largest dev shape at which every kind of pressure is put on every input.
const TOP_FLOPS: f64 = 6e7;

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
        // Rows must be long enough for blocks, lanes and tails of a kernel to lie apart in them.
        let long = long_rows(instance, &mut stream);
        let top = wide
            .iter()
            .filter(|bound| bound.cost_flops <= TOP_FLOPS)
            .max_by_key(|bound| bound.storage_bytes());
        let deep: Vec<Arc<Bound>> = long.iter().chain(top).cloned().collect();
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
                    && let Some(case) = self.pressed(bound, (pressure, 0), &[input], cases.len(), &mut stream)
                {
                    cases.push(case);
                    takers.push(input);
                }
            }
            if pressure.fits_all()
                && takers.len() > 1
                && let Some(bound) = turned(&small, cases.len())
            {
                cases.extend(self.pressed(bound, (pressure, 0), &takers, cases.len(), &mut stream));
            }
            // Where the shape is known the value must not be: one input, drawn, at the next of the wide shapes.
            if let Some(input) = takers.get(stream.below(takers.len() as u64) as usize)
                && let Some(bound) = turned(&wide, turn)
            {
                turn += 1;
                cases.extend(self.pressed(bound, (pressure, 0), &[*input], cases.len(), &mut stream));
            }
            for kind in 0..pressure.kinds() {
                if pressure.kinds() == 1 {
                    break;
                }
                for input in 0..inputs {
                    let long = long.iter();
                    // At the dev shape the inputs take turns, where they are many.
                    let top = top
                        .filter(|_| inputs <= 2 || (input + kind) % inputs == 0)
                        .into_iter();
                    for bound in long.chain(top) {
                        cases.extend(self.pressed(
                            bound,
                            (pressure, kind),
                            &[input],
                            cases.len(),
                            &mut stream,
                        ));
                    }
                }
            }
        }
        let mut shapes: Vec<Arc<Bound>> = small.first().cloned().into_iter().collect();
        shapes.extend(turned(&wide, turn).cloned());
        cases.extend(self.padded(&shapes, cases.len(), &mut stream));
        let paired: Vec<Arc<Bound>> = deep.iter().chain(&shapes).cloned().collect();
        cases.extend(self.paired(&paired, cases.len(), &mut stream)?);
        if let Some(largest) = wide.iter().max_by_key(|bound| bound.storage_bytes()) {
            cases.extend(self.halves(largest, cases.len(), &mut stream)?);
        }
        cases.extend(self.crossed(&deep, cases.len(), &mut stream)?);
        Ok(cases)
    }

    /// The dev fill with some inputs under a kind of pressure; `None` where none of them takes it.
    fn pressed(
        &self,
        bound: &Arc<Bound>,
        pressure: (Pressure, usize),
        inputs: &[usize],
        number: usize,
        stream: &mut Stream,
    ) -> Option<Pressed> {
        let spec = self.case(bound, dev_fills(bound), "pressed", number as u64);
        Self::put(spec, pressure, inputs, stream)
    }

    /// Puts a kind of pressure on some inputs of a case; `None` where none of them takes it.
    pub(super) fn put(
        mut spec: CaseSpec,
        (pressure, kind): (Pressure, usize),
        inputs: &[usize],
        stream: &mut Stream,
    ) -> Option<Pressed> {
        let bound = Arc::clone(&spec.bound);
        let drawn = spec.draw();
        let tensors: Vec<&Tensor> = bound.inputs().collect();
        let mut pressed = false;
        for &input in inputs {
            let (tensor, values) = (tensors.get(input)?, drawn.values.get(input)?);
            let given = match values {
                Values::Real(values) => press(pressure, kind, tensor, values, stream).map(Values::Real),
                Values::Whole(values) => {
                    let reals: Vec<f64> = values.iter().map(|value| *value as f64).collect();
                    press(pressure, kind, tensor, &reals, stream)
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

/// Of several drawn shapes the one whose shortest rows are longest, up to [`LONG_ROW`], and that holds most.
fn long_rows(instance: &Instance, stream: &mut Stream) -> Option<Arc<Bound>> {
    let drawn =
        (0..LONG_DRAWS).filter_map(|_| draw_shape(instance, stream, LONG, TOP_FLOPS, &AxisValues::new()));
    drawn.max_by_key(|bound| {
        let row = bound
            .inputs()
            .filter_map(|tensor| tensor.shape.last().copied())
            .min();
        (row.unwrap_or(0).min(LONG_ROW), bound.storage_bytes())
    })
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
