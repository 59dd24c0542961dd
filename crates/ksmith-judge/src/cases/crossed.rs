//! Crossed pressure: one input as a probe or a distribution of the contract has it, another one large, or with rows of different
//! amplitude.
//!
//! What a kernel drops as too small, because of the first input, may be what the second one makes large.

use std::sync::Arc;

use ksmith_task::{Bound, Role};

use super::case::CaseSpec;
use super::plan::{Plan, dev_fills, distribution_fills, distributions};
use super::pressed::Pressed;
use super::pressure::{Pressure, takes_pressure};
use super::stream::Stream;
use crate::judge::JudgeError;

/// Rows of very and of moderately different amplitude, and all of it 2^13 times as large: products of two inputs stay within eight
/// decades of the dev fills.
const PRESSURES: [(Pressure, usize); 3] = [
    (Pressure::RowAmplitudes, 0),
    (Pressure::RowAmplitudes, 1),
    (Pressure::Up, 1),
];
/// Inputs of one probe or distribution.
const AT_MOST: usize = 3;

impl Plan<'_> {
    /// For each distribution and each probe without sizes of its own: each of some pressures on inputs that take it and are not the
    /// probe's; inputs and shapes take turns.
    pub(super) fn crossed(
        &self,
        shapes: &[Arc<Bound>],
        from: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Pressed>, JudgeError> {
        let mut cases: Vec<Pressed> = Vec::new();
        let Some(first) = shapes.first() else {
            return Ok(cases);
        };
        let inputs: Vec<usize> = first
            .inputs()
            .enumerate()
            .filter(|(_, tensor)| {
                matches!(&tensor.role, Role::Input(rule) if tensor.dtype.is_float() && takes_pressure(&rule.fill))
            })
            .map(|(input, _)| input)
            .collect();
        // Nothing is crossed in a task of one input.
        if inputs.len() < 2 {
            return Ok(cases);
        }
        let mut turn = stream.below(shapes.len() as u64) as usize;
        let mut next = stream.below(inputs.len() as u64) as usize;
        for pressure in PRESSURES {
            let mut bases: Vec<(CaseSpec, bool)> = Vec::new();
            for number in 0..distributions(self.instance(), first) {
                let bound = &shapes[turn % shapes.len()];
                turn += 1;
                let fills = distribution_fills(self.instance(), bound, number, stream)?;
                bases.push((self.case(bound, fills, "crossed", 0), false));
            }
            let probes = self.free_probes(shapes, "crossed", stream)?;
            bases.extend(probes.into_iter().map(|probe| (probe, true)));
            for (base, probe) in bases {
                let dev = dev_fills(&base.bound);
                // What a probe makes of an input is its point.
                let free = inputs.iter().cycle().skip(next).take(inputs.len()).copied();
                let free = free.filter(|input| !probe || base.fills[*input] == dev[*input]);
                for input in free.take(AT_MOST).collect::<Vec<_>>() {
                    next = input + 1;
                    let mut spec = base.clone();
                    // A distribution may be wide already: what is pressed starts from the dev fill, as everywhere.
                    spec.fills[input].clone_from(&dev[input]);
                    spec.number = (from + cases.len()) as u64;
                    cases.extend(Self::put(spec, pressure, &[input], stream));
                }
            }
        }
        Ok(cases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Secret;
    use ksmith_task::Task;

    fn crossed(task: &str) -> Vec<Pressed> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tasks")
            .join(task);
        let instance = Task::load(folder).unwrap().instances().remove(0);
        let plan = Plan::hidden(&instance, &Secret::from_bytes([9; 32]));
        let mut cases = plan.pressures(1 << 20).unwrap();
        cases.retain(|case| case.spec.stream == "crossed");
        cases
    }

    #[test]
    fn values_have_other_amplitudes_while_scores_are_a_probes() {
        let cases = crossed("attention");
        let spread = |case: &Pressed| {
            let inputs = case.spec.draw();
            let dim = *case.spec.bound.inputs().next().unwrap().shape.last().unwrap();
            let rows = (0..inputs.values[2].len()).map(|at| inputs.values[2].real(at).abs());
            let rows: Vec<f64> = rows
                .collect::<Vec<_>>()
                .chunks(dim)
                .map(|row| row.iter().sum())
                .collect();
            rows.iter().copied().fold(0.0, f64::max) / rows.iter().copied().fold(f64::INFINITY, f64::min)
        };
        let far = cases.iter().filter(|case| spread(case) > 256.0).count();
        assert!(far >= 8, "{far} of {}", cases.len());
        let mut numbers: Vec<u64> = cases.iter().map(|case| case.spec.number).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), cases.len());
    }

    #[test]
    fn nothing_is_crossed_in_a_task_of_one_input() {
        assert!(crossed("softmax").is_empty());
    }
}
