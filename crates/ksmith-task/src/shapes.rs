//! Shapes that satisfy a contract: corners, odd tails, neighbours of dev workloads, random ones.

use crate::contract::{Axis, AxisKind, AxisValues};
use crate::{Bound, Instance};

/// Upper bounds of a random shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapeLimits {
    /// Bytes of all storage.
    pub max_bytes: u64,
    /// Floating-point operations by the contract's cost.
    pub max_flops: f64,
}

/// Corners beyond this many are sampled one axis at a time.
const MAX_CORNERS: usize = 256;
/// Tries to satisfy constraints and limits before giving up.
const TRIES: u32 = 400;

impl Instance {
    /// Axes that are given, not derived.
    fn free_axes(&self) -> Vec<&Axis> {
        let axes = &self.task().contract().axes;
        axes.iter()
            .filter(|axis| !matches!(axis.kind, AxisKind::Expr(_)))
            .collect()
    }

    /// All combinations of least and greatest sizes that satisfy the constraints; with many axes one or two axes at a
    /// time. A combination whose expressions fail is kept: lint reports it.
    pub fn corner_shapes(&self) -> Vec<AxisValues> {
        let axes = self.free_axes();
        let mut shapes = Vec::new();
        if axes.len() < 8 {
            for mask in 0..1usize << axes.len() {
                let high = |index: usize| mask >> index & 1 == 1;
                shapes.push(self.corner(&axes, high));
            }
        } else {
            for first in 0..axes.len() {
                for second in 0..axes.len() {
                    shapes.push(self.corner(&axes, |index| index == first || index == second));
                    shapes.push(self.corner(&axes, |index| index != first && index != second));
                }
            }
        }
        shapes.sort();
        shapes.dedup();
        shapes.truncate(MAX_CORNERS);
        shapes.retain(|shape| {
            !matches!(
                self.env(shape),
                Err(crate::BindError::Constraint(_) | crate::BindError::Size { .. })
            )
        });
        shapes
    }

    fn corner(&self, axes: &[&Axis], high: impl Fn(usize) -> bool) -> AxisValues {
        axes.iter()
            .enumerate()
            .map(|(index, axis)| (axis.name.clone(), axis.kind.extreme(high(index))))
            .collect()
    }

    /// Small shapes beside powers of two, one axis at a time, where vector loops leave tails. Sorted, without doubles.
    pub fn odd_shapes(&self) -> Vec<AxisValues> {
        const ODD: [i64; 8] = [1, 3, 7, 17, 31, 65, 127, 257];
        let axes = self.free_axes();
        let mut shapes = Vec::new();
        for odd in ODD {
            for varied in 0..axes.len() {
                let size = |index: usize| if index == varied { odd } else { 8 };
                shapes.push(
                    axes.iter()
                        .enumerate()
                        .map(|(index, axis)| (axis.name.clone(), axis.kind.nearest(size(index) as f64)))
                        .collect::<AxisValues>(),
                );
            }
        }
        shapes.sort();
        shapes.dedup();
        shapes.retain(|shape| self.bind(shape).is_ok());
        shapes
    }

    /// Shapes one step from `axes` along each axis.
    pub fn neighbour_shapes(&self, axes: &AxisValues) -> Vec<AxisValues> {
        let mut shapes = Vec::new();
        for axis in self.free_axes() {
            let Some(size) = axes.get(&axis.name) else {
                continue;
            };
            for next in axis.kind.beside(*size) {
                let mut shape: AxisValues = self
                    .free_axes()
                    .iter()
                    .filter_map(|a| Some((a.name.clone(), *axes.get(&a.name)?)))
                    .collect();
                shape.insert(axis.name.clone(), next);
                if self.bind(&shape).is_ok() {
                    shapes.push(shape);
                }
            }
        }
        shapes
    }

    /// A random shape that satisfies constraints and limits, sizes log-uniform; `bits` gives 64 random bits per call.
    /// `None` if none was found: the constraints are too narrow or the limits too small.
    pub fn sample_shape(&self, bits: &mut dyn FnMut() -> u64, limits: ShapeLimits) -> Option<AxisValues> {
        let axes = self.free_axes();
        for attempt in 0..TRIES {
            // Later tries prefer smaller shapes, so that tight limits are met.
            let ceiling = 1.0 - f64::from(attempt) / f64::from(TRIES);
            let shape: AxisValues = axes
                .iter()
                .map(|axis| {
                    let unit = (bits() >> 11) as f64 * (-53f64).exp2();
                    (axis.name.clone(), axis.kind.draw(unit * ceiling))
                })
                .collect();
            if self.bind(&shape).is_ok_and(|bound| within(&bound, limits)) {
                return Some(shape);
            }
        }
        None
    }
}

fn within(bound: &Bound, limits: ShapeLimits) -> bool {
    bound.storage_bytes() <= limits.max_bytes && bound.cost_flops <= limits.max_flops
}

impl AxisKind {
    /// Least or greatest size.
    fn extreme(&self, high: bool) -> i64 {
        match self {
            Self::Range {
                min,
                max,
                multiple_of,
            } if high => max.max(min) / multiple_of * multiple_of,
            Self::Range { min, multiple_of, .. } => (min + multiple_of - 1) / multiple_of * multiple_of,
            Self::Values(values) => {
                let value = if high { values.last() } else { values.first() };
                value.copied().unwrap_or(0)
            }
            Self::Expr(_) => 0,
        }
    }

    /// The allowed size nearest to `size` from below, or the least.
    fn nearest(&self, size: f64) -> i64 {
        let (least, most) = (self.extreme(false), self.extreme(true));
        match self {
            Self::Range { multiple_of, .. } => {
                let whole = size.clamp(least as f64, most as f64) as i64;
                (whole / multiple_of * multiple_of).clamp(least, most)
            }
            Self::Values(values) => {
                let below = values.iter().rev().find(|value| **value as f64 <= size);
                below.copied().unwrap_or(least)
            }
            Self::Expr(_) => 0,
        }
    }

    /// Maps `unit` in 0..1 to a size, log-uniformly for ranges, evenly for lists.
    fn draw(&self, unit: f64) -> i64 {
        match self {
            Self::Values(values) => {
                let index = (unit * values.len() as f64) as usize;
                values
                    .get(index.min(values.len().saturating_sub(1)))
                    .copied()
                    .unwrap_or(0)
            }
            Self::Range { .. } | Self::Expr(_) => {
                let (least, most) = (self.extreme(false), self.extreme(true));
                let (low, high) = (libm::log(least.max(1) as f64), libm::log(most as f64 + 1.0));
                let size = libm::exp(low + unit * (high - low));
                // A zero-sized axis is drawn as often as the smallest other size.
                if least == 0 && size < 2.0 && unit * 64.0 < 1.0 {
                    0
                } else {
                    self.nearest(size)
                }
            }
        }
    }

    /// The allowed sizes next to `size`.
    fn beside(&self, size: i64) -> Vec<i64> {
        match self {
            Self::Range {
                min,
                max,
                multiple_of,
            } => [size - multiple_of, size + multiple_of]
                .into_iter()
                .filter(|next| next >= min && next <= max)
                .collect(),
            Self::Values(values) => {
                let at = values.iter().position(|value| *value == size);
                let below = at.and_then(|at| at.checked_sub(1)).and_then(|at| values.get(at));
                let above = at.and_then(|at| values.get(at + 1));
                below.into_iter().chain(above).copied().collect()
            }
            Self::Expr(_) => Vec::new(),
        }
    }
}
