//! Inputs that nearly repeat themselves: rows that differ from the first in one element, and blocks whose ends agree.
//!
//! Guards against kernels that take a few equal samples for equality and copy or reuse a result. Values only move
//! within their tensor, so that domains hold. Nothing is made constant: sums of many equal terms round in one direction,
//! which honest kernels may do as well.

use std::sync::Arc;

use ksmith_task::{Fill, Role, Tensor};

use super::case::{CaseSpec, InputFill};
use super::stream::Stream;
use crate::number::Values;

/// How an input repeats itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Near {
    /// Every row is the first one but for one element.
    Rows,
    /// Aligned blocks of 4 to 64 elements whose last element is the first.
    Ends,
}

/// The spec with its real inputs made repetitive; structured inputs stay as they are.
pub(crate) fn near(mut spec: CaseSpec, how: Near, stream: &mut Stream) -> CaseSpec {
    let drawn = spec.draw();
    let tensors: Vec<&Tensor> = spec.bound.inputs().collect();
    for ((tensor, values), fill) in tensors.into_iter().zip(drawn.values).zip(&mut spec.fills) {
        let Values::Real(mut values) = values else {
            continue;
        };
        let generated = matches!(&tensor.role, Role::Input(rule) if matches!(rule.fill, Fill::Generator));
        if generated || values.len() != tensor.len() || values.is_empty() {
            continue;
        }
        match how {
            Near::Rows => repeat_rows(
                &mut values,
                tensor.shape.last().copied().unwrap_or(1).max(1),
                stream,
            ),
            Near::Ends => equal_ends(&mut values, stream),
        }
        *fill = InputFill::Given(Arc::new(Values::Real(values)));
    }
    spec
}

/// What unusual part is hidden among usual inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Some later rows, always the last one.
    Rows,
    /// One element in every row.
    Elements,
}

/// The usual inputs of `spec` with a few parts of `other`: whoever looks at the first rows, or at samples of each row,
/// learns nothing of the rest.
pub(crate) fn late(mut spec: CaseSpec, other: &CaseSpec, how: Late, stream: &mut Stream) -> CaseSpec {
    let (usual, odd) = (spec.draw().values, other.draw().values);
    let tensors: Vec<&Tensor> = spec.bound.inputs().collect();
    for (((tensor, usual), odd), fill) in tensors.into_iter().zip(usual).zip(odd).zip(&mut spec.fills) {
        let (Values::Real(mut values), Values::Real(odd)) = (usual, odd) else {
            continue;
        };
        let structured = matches!(
            &tensor.role,
            Role::Input(rule) if matches!(rule.fill, Fill::Generator | Fill::Partition { .. })
        );
        if structured || values.len() != odd.len() || values.len() != tensor.len() {
            continue;
        }
        let row = tensor.shape.last().copied().unwrap_or(1).max(1);
        let rows = values.len() / row;
        for at in 0..rows {
            let place = at * row + stream.below(row as u64) as usize;
            match how {
                Late::Rows if at > 0 && (at + 1 == rows || stream.below(16) == 0) => {
                    values[at * row..(at + 1) * row].copy_from_slice(&odd[at * row..(at + 1) * row]);
                }
                Late::Rows => {}
                Late::Elements => values[place] = odd[place],
            }
        }
        *fill = InputFill::Given(Arc::new(Values::Real(values)));
    }
    spec
}

fn repeat_rows(values: &mut [f64], row: usize, stream: &mut Stream) {
    let first: Vec<f64> = values[..row.min(values.len())].to_vec();
    for at in (row..values.len()).step_by(row) {
        let end = (at + row).min(values.len());
        let odd = at + stream.below((end - at) as u64) as usize;
        for (slot, from) in (at..end).zip(&first) {
            if slot != odd {
                values[slot] = *from;
            }
        }
    }
}

fn equal_ends(values: &mut [f64], stream: &mut Stream) {
    for stretch in values.chunks_mut(64) {
        let width = 4usize << stream.below(5);
        for block in stretch.chunks_mut(width) {
            if let [first, .., last] = block {
                *last = *first;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Key, Secret};

    fn stream() -> Stream {
        Key::new(&Secret::dev(), "near", 0, "test").block(0)
    }

    #[test]
    fn repeated_rows_differ_from_the_first_in_at_most_one_element() {
        let mut values: Vec<f64> = (0..35).map(f64::from).collect();
        repeat_rows(&mut values, 7, &mut stream());
        for row in values.chunks(7).skip(1) {
            let other = row.iter().zip(&values[..7]).filter(|(one, first)| one != first);
            assert_eq!(other.count(), 1);
        }
    }

    #[test]
    fn equal_ends_come_in_several_widths_and_leave_the_rest() {
        let mut values: Vec<f64> = (0..4096).map(f64::from).collect();
        equal_ends(&mut values, &mut stream());
        let same = |width: usize| {
            values
                .chunks(width)
                .filter(|block| block[0] == block[width - 1])
                .count()
        };
        assert!(same(8) > 50 && same(64) > 4);
        let moved = (0..4096).filter(|&at| values[at] != at as f64).count();
        assert!((100..1100).contains(&moved), "{moved}");
    }
}
