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
    /// Each block by a power of its own, either way.
    Graded,
}

/// How long the blocks of one power are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocks {
    /// 1 to 8 coordinates.
    Short,
    /// 16 to 64.
    Long,
    /// Half of the axis.
    Half,
}

const PATTERNS: [Pattern; 3] = [Pattern::Halves, Pattern::Both, Pattern::Graded];
const BLOCKS: [Blocks; 3] = [Blocks::Short, Blocks::Long, Blocks::Half];
/// The greatest powers of two: the last stays within the eight decades of the plain tier, either way.
const POWERS: [i32; 3] = [8, 16, 27];
/// So many scalings in a row meet each pattern, each length and each power.
const PART: usize = 9;

/// What is done along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scaling {
    pattern: Pattern,
    blocks: Blocks,
    power: i32,
}

impl Scaling {
    /// Two halves of moderately different size: what tells extreme data by its largest element takes them for usual ones.
    const MODERATE: Self = Self {
        pattern: Pattern::Halves,
        blocks: Blocks::Half,
        power: 13,
    };

    /// All of them, in an order that meets each pattern, each length and each power early.
    fn all() -> impl Iterator<Item = Self> {
        (0..27).map(|at| Self {
            pattern: PATTERNS[(at + at / 3 + at / 9) % 3],
            blocks: BLOCKS[(at + at / 3) % 3],
            power: POWERS[at % 3],
        })
    }
}

impl Plan<'_> {
    /// For each axis that two or more float inputs share: every scaling or a part of them at the first shapes, a drawn one at
    /// the others.
    pub(super) fn paired(
        &self,
        shapes: &[Arc<Bound>],
        from: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Pressed>, JudgeError> {
        let all: Vec<Scaling> = Scaling::all().collect();
        let mut cases: Vec<Pressed> = Vec::new();
        for (turn, bound) in shapes.iter().enumerate() {
            let kinds = distributions(self.instance(), bound) as u64;
            let axes: Vec<(i64, Vec<usize>)> = bound
                .axes
                .iter()
                .filter(|(name, size)| *size >= 4 && !seen_before(bound, name, *size))
                .map(|(_, size)| (*size, sharing(bound, *size as usize)))
                .filter(|(_, sharing)| sharing.len() >= 2)
                .collect();
            // All of them at the first shape where one axis is shared; a part elsewhere, from a drawn one on.
            let part = match turn {
                0 if axes.len() < 2 => all.len(),
                0 | 1 => PART,
                _ => 1,
            };
            for (size, sharing) in &axes {
                let from_drawn = stream.below(all.len() as u64) as usize;
                let scalings = all.iter().cycle().skip(from_drawn).take(part);
                for scaling in scalings {
                    let kind = stream.below(2 * kinds) as usize;
                    let kind = (kind < kinds as usize).then_some(kind);
                    cases.push(self.along(
                        (bound, *size),
                        sharing,
                        (*scaling, kind),
                        from + cases.len(),
                        stream,
                    )?);
                }
            }
        }
        Ok(cases)
    }

    /// At the largest dev shape, where kernels take other ways than at small ones: two halves of moderately different size, along
    /// each shared axis and from each distribution.
    pub(super) fn halves(
        &self,
        bound: &Arc<Bound>,
        from: usize,
        stream: &mut Stream,
    ) -> Result<Vec<Pressed>, JudgeError> {
        let mut cases: Vec<Pressed> = Vec::new();
        for (name, size) in &bound.axes {
            let sharing = sharing(bound, *size as usize);
            if *size < 4 || sharing.len() < 2 || seen_before(bound, name, *size) {
                continue;
            }
            for kind in 0..distributions(self.instance(), bound) {
                let how = (Scaling::MODERATE, Some(kind));
                cases.push(self.along((bound, *size), &sharing, how, from + cases.len(), stream)?);
            }
        }
        Ok(cases)
    }

    /// One case: an axis of this size scaled, from the dev fill or a distribution.
    fn along(
        &self,
        (bound, size): (&Arc<Bound>, i64),
        sharing: &[usize],
        (scaling, kind): (Scaling, Option<usize>),
        number: usize,
        stream: &mut Stream,
    ) -> Result<Pressed, JudgeError> {
        let fills = match kind {
            Some(kind) => distribution_fills(self.instance(), bound, kind, stream)?,
            None => dev_fills(bound),
        };
        let mut spec = self.case(bound, fills, "paired", number as u64);
        // Each of them goes the other way from the rest in its turn.
        let down = sharing[number % sharing.len()];
        scale(&mut spec, size as usize, sharing, down, scaling, stream);
        Ok(Pressed {
            spec,
            tier: Tier::Plain,
        })
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
fn exponents(size: usize, scaling: Scaling, stream: &mut Stream) -> Vec<i32> {
    let block = match scaling.blocks {
        Blocks::Short => 1usize << stream.below(4),
        Blocks::Long => 16usize << stream.below(3),
        Blocks::Half => size.div_ceil(2),
    };
    let block = block.min(size.div_ceil(2)).max(1);
    let mut exponent = 0;
    let mut exponents: Vec<i32> = (0..size)
        .map(|at| {
            if at % block == 0 {
                let power = scaling.power;
                exponent = match scaling.pattern {
                    Pattern::Halves => power * stream.below(2) as i32,
                    Pattern::Both => power * (stream.below(3) as i32 - 1),
                    Pattern::Graded => stream.below(2 * power as u64 + 1) as i32 - power,
                };
            }
            exponent
        })
        .collect();
    // One and the same factor everywhere would be no pattern.
    if exponents.iter().all(|exponent| *exponent == exponents[0]) {
        let other = if exponents[0] == 0 { scaling.power } else { 0 };
        exponents[..block].fill(other);
    }
    exponents
}

fn scale(
    spec: &mut super::CaseSpec,
    size: usize,
    sharing: &[usize],
    down: usize,
    scaling: Scaling,
    stream: &mut Stream,
) {
    let exponents = exponents(size, scaling, stream);
    let bound = Arc::clone(&spec.bound);
    let tensors: Vec<&Tensor> = bound.inputs().collect();
    // One bound for all of them: what goes down in one goes up by as much in the others.
    let most = sharing
        .iter()
        .map(|input| limited(tensors[*input].dtype, scaling.power))
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
        let mut all: Vec<Scaling> = Vec::new();
        for scaling in Scaling::all() {
            for size in [4, 5, 64, 1000] {
                let exponents = exponents(size, scaling, &mut stream);
                assert_eq!(exponents.len(), size);
                assert!(exponents.iter().any(|exponent| *exponent != exponents[0]));
                assert!(exponents.iter().all(|exponent| exponent.abs() <= scaling.power));
            }
            assert!(!all.contains(&scaling));
            all.push(scaling);
        }
        assert_eq!(all.len(), 27);
    }

    #[test]
    fn tasks_of_one_input_have_no_pairs() {
        assert_eq!(paired("softmax", |_| ()), 0);
    }
}
