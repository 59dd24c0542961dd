//! Hidden shapes: drawn log-uniformly within the contract's limits, and neighbours of the dev workloads.

use std::sync::Arc;

use ksmith_task::contract::AxisKind;
use ksmith_task::{AxisValues, Bound, Instance};

use super::stream::Stream;

/// Sizes that fit the contract, with their storage.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Name for the judge's own records; never shown to writers if it is hidden.
    pub name: String,
    /// The bound workload.
    pub bound: Arc<Bound>,
}

/// Tries at one draw before the largest allowed size is halved.
const TRIES: u32 = 24;

/// Draws among which the large shape is found.
const LARGE_TRIES: u32 = 128;

/// The first draw with at least a quarter of `bytes`, or the largest of many, within both limits.
pub(crate) fn draw_large(
    instance: &Instance,
    stream: &mut Stream,
    bytes: u64,
    flops: f64,
) -> Option<Arc<Bound>> {
    let mut largest: Option<Bound> = None;
    for _ in 0..LARGE_TRIES {
        let axes = draw_axes(instance, stream, i64::MAX, &AxisValues::new());
        let Ok(bound) = instance.bind(&axes) else { continue };
        let storage = bound.storage_bytes();
        if storage > bytes || bound.cost_flops > flops {
            continue;
        }
        if storage >= bytes / 4 {
            return Some(Arc::new(bound));
        }
        if largest
            .as_ref()
            .is_none_or(|largest| largest.storage_bytes() < storage)
        {
            largest = Some(bound);
        }
    }
    largest.map(Arc::new)
}

/// For each free axis a shape with its greatest size, the others drawn within the limits: where buffers of a fixed size
/// end.
pub(crate) fn axis_ends(instance: &Instance, stream: &mut Stream, bytes: u64, flops: f64) -> Vec<Arc<Bound>> {
    let mut shapes = Vec::new();
    for axis in &instance.task().contract().axes {
        let AxisKind::Range { max, multiple_of, .. } = &axis.kind else {
            continue;
        };
        let step = (*multiple_of).max(1);
        let fixed = AxisValues::from([(axis.name.clone(), max / step * step)]);
        shapes.extend(draw_shape(instance, stream, bytes, flops, &fixed));
    }
    shapes
}

/// Draws one shape of at most `bytes` of storage and `flops` operations; `fixed` axes keep their sizes.
pub fn draw_shape(
    instance: &Instance,
    stream: &mut Stream,
    bytes: u64,
    flops: f64,
    fixed: &AxisValues,
) -> Option<Arc<Bound>> {
    let mut cap = i64::MAX;
    for _ in 0..48 {
        let mut widest = 1;
        for _ in 0..TRIES {
            let axes = draw_axes(instance, stream, cap, fixed);
            widest = widest.max(axes.values().copied().max().unwrap_or(1));
            if let Ok(bound) = instance.bind(&axes)
                && bound.storage_bytes() <= bytes
                && bound.cost_flops <= flops
            {
                return Some(Arc::new(bound));
            }
        }
        if cap == 1 {
            return None;
        }
        cap = (widest.min(cap) / 2).max(1);
    }
    None
}

fn draw_axes(instance: &Instance, stream: &mut Stream, cap: i64, fixed: &AxisValues) -> AxisValues {
    let mut axes = AxisValues::new();
    for axis in &instance.task().contract().axes {
        let size = match (&axis.kind, fixed.get(&axis.name)) {
            (_, Some(size)) => *size,
            (
                AxisKind::Range {
                    min,
                    max,
                    multiple_of,
                },
                None,
            ) => {
                let step = (*multiple_of).max(1);
                let least = least_size(*min, step);
                let most = (*max).min(cap.max(least));
                let (low, high) = (libm::log(least as f64), libm::log(most.max(least) as f64 + 1.0));
                let drawn = libm::exp(low + (high - low) * stream.unit()) as i64;
                (drawn / step * step).clamp(least, most.max(least))
            }
            (AxisKind::Values(values), None) => {
                let below: Vec<i64> = values.iter().copied().filter(|value| *value <= cap).collect();
                let from = if below.is_empty() { values } else { &below };
                match from.get(stream.below(from.len() as u64) as usize) {
                    Some(value) => *value,
                    None => continue,
                }
            }
            (AxisKind::Expr(_), None) => continue,
        };
        axes.insert(axis.name.clone(), size);
    }
    axes
}

/// The least size of a free axis: whole steps, at least one of them and at least `min`.
pub(super) fn least_size(min: i64, step: i64) -> i64 {
    (min.max(step) + step - 1) / step * step
}

/// Sizes like `axes` in small: the largest free axis is halved until the storage is within `bytes`.
///
/// The proportions stay those of the workload until its axes are equal, so that no axis shrinks to a few elements while
/// another stays long: such a shape says nothing about the workload. None if nothing can shrink further.
pub(crate) fn in_small(instance: &Instance, axes: &AxisValues, bytes: u64) -> Option<Arc<Bound>> {
    let kinds = &instance.task().contract().axes;
    let free = |name: &String| {
        kinds
            .iter()
            .any(|axis| axis.name == *name && !matches!(axis.kind, AxisKind::Expr(_)))
    };
    let mut axes: AxisValues = axes.clone().into_iter().filter(|(name, _)| free(name)).collect();
    loop {
        if let Ok(bound) = instance.bind(&axes)
            && bound.storage_bytes() <= bytes
        {
            return Some(Arc::new(bound));
        }
        let (name, size) = kinds
            .iter()
            .filter_map(|axis| {
                let size = *axes.get(&axis.name)?;
                Some((&axis.name, size, half(&axis.kind, size)?))
            })
            // Among equals the first: rows before columns.
            .rev()
            .max_by_key(|(_, size, _)| *size)
            .map(|(name, _, half)| (name.clone(), half))?;
        axes.insert(name, size);
    }
}

/// The greatest size an axis allows up to half of `size`, or its next one below; none at its least.
fn half(kind: &AxisKind, size: i64) -> Option<i64> {
    match kind {
        AxisKind::Range { min, multiple_of, .. } => {
            let step = (*multiple_of).max(1);
            let half = (size / 2 / step * step).max(least_size(*min, step));
            (half < size).then_some(half)
        }
        AxisKind::Values(values) => {
            let below = || values.iter().copied().filter(|value| *value < size);
            below()
                .filter(|value| *value <= size / 2)
                .max()
                .or_else(|| below().max())
        }
        AxisKind::Expr(_) => None,
    }
}

/// A neighbour of a workload: each free axis moves by at most a few steps, at least one really moves.
pub fn neighbour(instance: &Instance, stream: &mut Stream, axes: &AxisValues) -> Option<Arc<Bound>> {
    for _ in 0..TRIES {
        let mut near = AxisValues::new();
        let mut moved = false;
        for axis in &instance.task().contract().axes {
            let Some(size) = axes.get(&axis.name) else {
                continue;
            };
            let size = match &axis.kind {
                AxisKind::Range {
                    min,
                    max,
                    multiple_of,
                } => {
                    let step = (*multiple_of).max(1);
                    let shift = stream.below(7) as i64 - 3;
                    let near = (size + shift * step).clamp(*min, *max);
                    moved |= near != *size;
                    near
                }
                AxisKind::Values(values) => {
                    let at = values.iter().position(|value| value == size).unwrap_or(0) as i64;
                    let to = (at + stream.below(3) as i64 - 1).clamp(0, values.len() as i64 - 1) as usize;
                    let near = values.get(to).copied().unwrap_or(*size);
                    moved |= near != *size;
                    near
                }
                AxisKind::Expr(_) => continue,
            };
            near.insert(axis.name.clone(), size);
        }
        if moved && let Ok(bound) = instance.bind(&near) {
            return Some(Arc::new(bound));
        }
    }
    None
}

/// The smallest shapes that bind: all axes at their least, then each axis at a few odd sizes.
pub fn tiny(instance: &Instance, stream: &mut Stream, count: usize) -> Vec<Arc<Bound>> {
    let mut shapes: Vec<Arc<Bound>> = Vec::new();
    let limits = [4 << 10, 16 << 10, 64 << 10];
    for index in 0..count * 3 {
        if shapes.len() == count {
            break;
        }
        let limit = limits[index % limits.len()] as u64;
        if let Some(bound) = draw_shape(instance, stream, limit, f64::INFINITY, &AxisValues::new())
            && !shapes.iter().any(|shape| shape.axes == bound.axes)
        {
            shapes.push(bound);
        }
    }
    if shapes.is_empty()
        && let Some(bound) = draw_shape(instance, stream, u64::MAX, f64::INFINITY, &AxisValues::new())
    {
        shapes.push(bound);
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Key, Secret};
    use ksmith_task::Task;

    fn softmax() -> Instance {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/softmax");
        Task::load(folder).unwrap().instances().remove(0)
    }

    fn stream(number: u64) -> Stream {
        Key::new(&Secret::dev(), "shapes", number, "test").block(0)
    }

    #[test]
    fn the_large_shape_lies_between_a_quarter_of_its_limit_and_the_limit() {
        let instance = softmax();
        for number in 0..50 {
            let bound = draw_large(&instance, &mut stream(number), 32 << 20, 1e9).unwrap();
            assert!(
                (8 << 20..=32 << 20).contains(&bound.storage_bytes()),
                "{:?}",
                bound.axes
            );
        }
    }

    #[test]
    fn a_workload_in_small_keeps_its_proportions() {
        let instance = softmax();
        let axes =
            |rows: i64, cols: i64| AxisValues::from([("rows".to_owned(), rows), ("cols".to_owned(), cols)]);
        let sizes = |bytes: u64| {
            let small = in_small(&instance, &axes(4096, 512), bytes).unwrap();
            assert!(small.storage_bytes() <= bytes);
            ["rows", "cols"].map(|axis| small.axes.iter().find(|(name, _)| name == axis).unwrap().1)
        };
        assert_eq!(sizes(64 << 20), [4096, 512]);
        assert_eq!(sizes(2 << 20), [512, 512]);
        assert_eq!(sizes(16 << 10), [32, 64]);
        assert!(in_small(&instance, &axes(4096, 512), 1).is_none());
    }

    #[test]
    fn every_axis_reaches_its_end() {
        let shapes = axis_ends(&softmax(), &mut stream(0), 1 << 20, 1e9);
        let size = |shape: &Arc<Bound>, axis: &str| {
            shape
                .axes
                .iter()
                .find(|(name, _)| name == axis)
                .map(|(_, size)| *size)
        };
        assert_eq!(shapes.len(), 2);
        assert_eq!(size(&shapes[0], "rows"), Some(65536));
        assert_eq!(size(&shapes[1], "cols"), Some(32768));
        assert!(shapes.iter().all(|shape| shape.storage_bytes() <= 1 << 20));
    }
}
