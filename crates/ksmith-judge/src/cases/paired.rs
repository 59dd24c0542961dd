//! Paired scaling: along an axis that float inputs share, coordinates are scaled down in one input and up in the others,
//! so that products over it keep their size while the factors do not.
//!
//! A kernel that drops what is small in one input alone, or mixes coordinates before it multiplies, is wrong here.

use std::sync::Arc;

use ksmith_task::{Bound, Role, Tensor};

use super::case::InputFill;
use super::domain;
use super::plan::{Plan, dev_fills, distribution_fills, distributions};
use super::pressed::Pressed;
use super::pressure::{Tier, limited, takes_pressure};
use super::stream::Stream;
use crate::judge::JudgeError;
use crate::number::{self, Values};

/// How the exponents lie along the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Every other block or so, all by the same power.
    Halves,
    /// Blocks go down, stay or go up, all by the same power.
    Both,
    /// Each block by a power of its own.
    Graded,
}

const PATTERNS: [Pattern; 3] = [Pattern::Halves, Pattern::Both, Pattern::Graded];
/// The greatest powers of two of the patterns.
const POWER: i32 = 16;
const GRADES: i32 = 24;
/// The longest blocks are two to this power, or half of the axis.
const BLOCKS: u64 = 6;

impl Plan<'_> {
    /// For each axis that two or more float inputs share: every pattern at the first shape, one at each other.
    pub(super) fn paired(
        &self,
        shapes: &[Arc<Bound>],
        from: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Pressed>, JudgeError> {
        let mut cases: Vec<Pressed> = Vec::new();
        for (turn, bound) in shapes.iter().enumerate() {
            let kinds = distributions(self.instance(), bound) as u64;
            for (name, size) in &bound.axes {
                let sharing = sharing(bound, *size as usize);
                if *size < 4 || sharing.len() < 2 || seen_before(bound, name, *size) {
                    continue;
                }
                let patterns = match turn {
                    0 => &PATTERNS[..],
                    _ => std::slice::from_ref(&PATTERNS[stream.below(PATTERNS.len() as u64) as usize]),
                };
                for pattern in patterns {
                    let fills = match stream.below(2) {
                        0 => dev_fills(bound),
                        _ => {
                            let kind = stream.below(kinds) as usize;
                            distribution_fills(self.instance(), bound, kind, stream)?
                        }
                    };
                    let number = (from + cases.len()) as u64;
                    let mut spec = self.case(bound, fills, "paired", number);
                    scale(&mut spec, *size as usize, &sharing, *pattern, stream);
                    cases.push(Pressed {
                        spec,
                        tier: Tier::Plain,
                    });
                }
            }
        }
        Ok(cases)
    }
}

/// Axes of one size are one axis to the tensors.
pub(super) fn seen_before(bound: &Bound, name: &str, size: i64) -> bool {
    let mut before = bound.axes.iter().take_while(|(other, _)| other != name);
    before.any(|(_, other)| *other == size)
}

/// The inputs that have a dimension of this size and may be scaled.
fn sharing(bound: &Bound, size: usize) -> Vec<usize> {
    let takes = |tensor: &Tensor| {
        let Role::Input(rule) = &tensor.role else {
            return false;
        };
        let bounded = rule
            .domain
            .is_some_and(|domain| domain.low.is_some() && domain.high.is_some());
        tensor.dtype.is_float() && !bounded && takes_pressure(&rule.fill) && tensor.shape.contains(&size)
    };
    let inputs = bound.inputs().enumerate();
    inputs
        .filter(|(_, tensor)| takes(tensor))
        .map(|(input, _)| input)
        .collect()
}

/// The exponent of every coordinate.
fn exponents(size: usize, pattern: Pattern, stream: &mut Stream) -> Vec<i32> {
    let block = match stream.below(BLOCKS + 2) {
        power if power <= BLOCKS => 1usize << power,
        _ => size.div_ceil(2),
    };
    let block = block.min(size.div_ceil(2)).max(1);
    let mut exponent = 0;
    let mut exponents: Vec<i32> = (0..size)
        .map(|at| {
            if at % block == 0 {
                exponent = match pattern {
                    Pattern::Halves => POWER * stream.below(2) as i32,
                    Pattern::Both => POWER * (stream.below(3) as i32 - 1),
                    Pattern::Graded => stream.below(GRADES as u64 + 1) as i32,
                };
            }
            exponent
        })
        .collect();
    // One and the same factor everywhere would be no pattern.
    if exponents.iter().all(|exponent| *exponent == exponents[0]) {
        let other = if exponents[0] == 0 { POWER } else { 0 };
        exponents[..block].fill(other);
    }
    exponents
}

fn scale(spec: &mut super::CaseSpec, size: usize, sharing: &[usize], pattern: Pattern, stream: &mut Stream) {
    let exponents = exponents(size, pattern, stream);
    let down = sharing[stream.below(sharing.len() as u64) as usize];
    let bound = Arc::clone(&spec.bound);
    let tensors: Vec<&Tensor> = bound.inputs().collect();
    // One bound for all of them: what goes down in one goes up by as much in the others.
    let most = sharing
        .iter()
        .map(|input| limited(tensors[*input].dtype, GRADES))
        .min()
        .unwrap_or(0);
    let drawn = spec.draw();
    for &input in sharing {
        let (tensor, Role::Input(rule)) = (tensors[input], &tensors[input].role) else {
            continue;
        };
        let (Values::Real(values), Some(axis)) = (
            &drawn.values[input],
            tensor.shape.iter().position(|length| *length == size),
        ) else {
            continue;
        };
        let side = if input == down { -1 } else { 1 };
        let below: usize = tensor.shape.iter().skip(axis + 1).product();
        let scaled = values.iter().enumerate().map(|(at, value)| {
            let exponent = exponents[at / below.max(1) % size].clamp(-most, most);
            domain::settle(
                value * number::power_of_two(side * exponent),
                tensor.dtype,
                rule.domain.as_ref(),
            )
        });
        spec.fills[input] = InputFill::Given(Arc::new(Values::Real(scaled.collect())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Secret;
    use ksmith_task::Task;

    fn paired(task: &str, check: impl Fn(&Pressed)) -> usize {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tasks")
            .join(task);
        let instance = Task::load(folder).unwrap().instances().remove(0);
        let plan = Plan::hidden(&instance, &Secret::from_bytes([9; 32]));
        let cases = plan.pressures(1 << 20).unwrap();
        let paired = cases.iter().filter(|case| case.spec.stream == "paired");
        paired.inspect(|case| check(case)).count()
    }

    #[test]
    fn what_goes_down_in_one_input_goes_up_in_the_others() {
        let count = paired("gemv", |case| {
            let inputs = case.spec.draw();
            let (a, x) = (&inputs.values[0], &inputs.values[1]);
            let k = x.len();
            // The drawn factors are of one size: the scaled ones are not.
            let (mut least, mut most) = (f64::INFINITY, 0.0f64);
            for at in 0..k {
                let rows = a.len() / k;
                let column = (0..rows).map(|row| a.real(row * k + at).abs()).sum::<f64>() / rows as f64;
                if x.real(at) != 0.0 && column > 0.0 {
                    least = least.min(column);
                    most = most.max(column);
                }
            }
            assert!(k < 8 || most / least > 2.0, "{least} {most}");
        });
        assert!(count >= 3, "{count}");
    }

    #[test]
    fn exponents_vary_and_stay_within_their_power() {
        let plan_key = crate::cases::Key::new(&Secret::dev(), "paired", 0, "exponents");
        let mut stream = plan_key.block(0);
        for pattern in PATTERNS {
            for size in [4, 5, 64, 1000] {
                let exponents = exponents(size, pattern, &mut stream);
                assert_eq!(exponents.len(), size);
                assert!(exponents.iter().any(|exponent| *exponent != exponents[0]));
                assert!(exponents.iter().all(|exponent| exponent.abs() <= 2 * GRADES));
            }
        }
    }

    #[test]
    fn tasks_of_one_input_have_no_pairs() {
        assert_eq!(paired("softmax", |_| ()), 0);
    }
}
