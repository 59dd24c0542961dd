//! Moving elements between row-major order and a tensor's storage, whose gaps hold poison.

use ksmith_task::Tensor;
use ksmith_task::instance::row_major;

/// What gaps and unwritten outputs hold: a NaN in every float dtype (also as 0xff bytes in 8-bit floats), and an
/// implausible integer.
pub const POISONS: [u8; 2] = [0xff, 0x7f];

/// Calls `visit(storage offset, row-major index, run length)` for each contiguous run of elements.
fn runs(tensor: &Tensor, mut visit: impl FnMut(usize, usize, usize)) {
    let len: usize = tensor.shape.iter().product();
    if len == 0 {
        return;
    }
    if tensor.strides == row_major(&tensor.shape) {
        return visit(0, 0, len);
    }
    let (last, run) = match (tensor.strides.last(), tensor.shape.last()) {
        (Some(1), Some(run)) => (tensor.shape.len() - 1, *run),
        _ => (tensor.shape.len(), 1),
    };
    let mut place = vec![0usize; last];
    let mut index = 0;
    while index < len {
        let offset = place
            .iter()
            .zip(&tensor.strides)
            .map(|(at, stride)| at * stride)
            .sum();
        visit(offset, index, run);
        index += run;
        for dimension in (0..last).rev() {
            place[dimension] += 1;
            if place[dimension] < tensor.shape[dimension] {
                break;
            }
            place[dimension] = 0;
        }
    }
}

/// Writes row-major element bytes into storage; gaps keep what they hold.
pub fn scatter(tensor: &Tensor, elements: &[u8], storage: &mut [u8]) {
    let width = tensor.dtype.bytes();
    runs(tensor, |offset, index, run| {
        let (from, bytes) = (index * width, run * width);
        storage[offset * width..offset * width + bytes].copy_from_slice(&elements[from..from + bytes]);
    });
}

/// Reads elements from storage in row-major order.
pub fn gather(tensor: &Tensor, storage: &[u8]) -> Vec<u8> {
    let width = tensor.dtype.bytes();
    if tensor.is_contiguous() {
        return storage[..tensor.len() * width].to_vec();
    }
    let mut elements = vec![0; tensor.len() * width];
    runs(tensor, |offset, index, run| {
        let (to, bytes) = (index * width, run * width);
        elements[to..to + bytes].copy_from_slice(&storage[offset * width..offset * width + bytes]);
    });
    elements
}

/// Whether every byte outside the elements still holds `poison`.
pub fn gaps_untouched(tensor: &Tensor, storage: &[u8], poison: u8) -> bool {
    if tensor.is_contiguous() {
        return true;
    }
    let width = tensor.dtype.bytes();
    let mut gaps = storage.to_vec();
    runs(tensor, |offset, _, run| {
        gaps[offset * width..(offset + run) * width].fill(poison)
    });
    gaps.iter().all(|byte| *byte == poison)
}
