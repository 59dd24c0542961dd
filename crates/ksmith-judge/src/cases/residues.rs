//! Sizes of every residue: an unrolled loop's tail may be wrong for one of them only.

use std::sync::Arc;

use ksmith_task::contract::AxisKind;
use ksmith_task::{AxisValues, Bound, Instance};

use super::shapes::least_size;
use super::stream::Stream;

/// Residues are those modulo this.
const PERIOD: i64 = 64;
/// Multiples of the period below the sizes, in two sweeps: tails of short loops and of long ones.
const BASES: [(u64, u64); 2] = [(1, 8), (8, 17)];
/// Storage and operations of one such case, at most.
const BYTES: u64 = 64 << 10;
const FLOPS: f64 = 8e6;
/// Draws of the other axes before a size is given up.
const TRIES: u64 = 6;

/// For each free axis a shape of every residue modulo 64 that it allows, once below 512 and once from there to 1087, the
/// other axes small.
pub(crate) fn residues(instance: &Instance, stream: &mut Stream) -> Vec<Arc<Bound>> {
    let mut shapes = Vec::new();
    for axis in &instance.task().contract().axes {
        let AxisKind::Range {
            min,
            max,
            multiple_of,
        } = &axis.kind
        else {
            continue;
        };
        let step = (*multiple_of).max(1);
        for (least, end) in BASES {
            for residue in 0..PERIOD {
                let size = PERIOD * (least + stream.below(end - least)) as i64 + residue;
                if size % step == 0 && (*min..=*max).contains(&size) {
                    shapes.extend(with_size(instance, &axis.name, size, stream));
                }
            }
        }
    }
    shapes
}

fn with_size(instance: &Instance, name: &str, size: i64, stream: &mut Stream) -> Option<Arc<Bound>> {
    (0..TRIES).find_map(|attempt| {
        // At first a few steps above the least sizes, in the end the least themselves.
        let room = TRIES - attempt;
        let mut axes = AxisValues::from([(name.to_owned(), size)]);
        for axis in &instance.task().contract().axes {
            let other = match &axis.kind {
                _ if axis.name == name => continue,
                AxisKind::Range {
                    min,
                    max,
                    multiple_of,
                } => {
                    let step = (*multiple_of).max(1);
                    let least = least_size(*min, step);
                    (least + step * stream.below(room) as i64).min((*max).max(least))
                }
                AxisKind::Values(values) => *values.iter().min()?,
                AxisKind::Expr(_) => continue,
            };
            axes.insert(axis.name.clone(), other);
        }
        let bound = instance.bind(&axes).ok()?;
        (bound.storage_bytes() <= BYTES && bound.cost_flops <= FLOPS).then(|| Arc::new(bound))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Key, Secret};
    use ksmith_task::Task;
    use std::collections::BTreeSet;

    fn sizes(task: &str, axis: &str) -> BTreeSet<i64> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tasks")
            .join(task);
        let instance = Task::load(folder).unwrap().instances().remove(0);
        let mut stream = Key::new(&Secret::dev(), "residues", 0, task).block(0);
        residues(&instance, &mut stream)
            .iter()
            .flat_map(|bound| bound.axes.clone())
            .filter_map(|(name, size)| (name == axis && size >= PERIOD).then_some(size))
            .collect()
    }

    #[test]
    fn every_residue_of_every_axis_comes_below_512_and_above() {
        for (task, axis) in [
            ("softmax", "cols"),
            ("softmax", "rows"),
            ("gemm", "k"),
            ("attention", "seq"),
            ("topk_gate", "experts"),
        ] {
            let sizes = sizes(task, axis);
            for residue in 0..PERIOD {
                let here = || sizes.iter().filter(|size| *size % PERIOD == residue);
                assert!(here().any(|size| *size < 512), "{task} {axis} {residue}");
                // Experts end at 1024.
                let ends = task == "topk_gate";
                assert!(ends || here().any(|size| *size >= 512), "{task} {axis} {residue}");
            }
        }
    }

    #[test]
    fn axes_that_end_early_have_no_such_sizes() {
        assert!(sizes("topk_gate", "k").is_empty());
    }
}
