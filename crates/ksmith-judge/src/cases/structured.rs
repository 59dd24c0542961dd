//! Fills whose elements depend on each other: along the last dimension, one random stream per row or run.

use std::collections::HashMap;

use rayon::prelude::*;

use super::stream::Key;

/// Sorts each row ascending (NaN last).
pub(crate) fn sorted(mut values: Vec<f64>, row: usize) -> Vec<f64> {
    values
        .par_chunks_mut(row.max(1))
        .for_each(|row| row.sort_unstable_by(f64::total_cmp));
    values
}

/// Each run of `n` elements is a permutation of `0..n`; a shorter last run is the start of one.
pub(crate) fn permutation(len: usize, n: usize, key: &Key) -> Vec<f64> {
    let mut values = vec![0.0; len];
    values
        .par_chunks_mut(n.max(1))
        .enumerate()
        .for_each(|(run, slots)| {
            choose(slots, n as u64, key, run as u64);
        });
    values
}

/// Whole numbers below `n`, no two equal in a row (a row longer than `n` starts over).
pub(crate) fn distinct(len: usize, row: usize, n: u64, key: &Key) -> Vec<f64> {
    let mut values = vec![0.0; len];
    values
        .par_chunks_mut(row.max(1))
        .enumerate()
        .for_each(|(index, slots)| {
            for part in slots.chunks_mut(usize::try_from(n.max(1)).unwrap_or(usize::MAX)) {
                choose(part, n, key, index as u64);
            }
        });
    values
}

/// Draws without replacement from `0..n`: a Fisher-Yates shuffle that stores only what it moved.
fn choose(slots: &mut [f64], n: u64, key: &Key, stream: u64) {
    let mut stream = key.block(stream);
    let mut moved: HashMap<u64, u64> = HashMap::with_capacity(slots.len());
    for (i, slot) in slots.iter_mut().enumerate() {
        let i = i as u64;
        let j = i + stream.below(n.saturating_sub(i));
        let here = moved.get(&i).copied().unwrap_or(i);
        let there = moved.insert(j, here).unwrap_or(j);
        *slot = if j == i { here } else { there } as f64;
    }
}

/// One 1 per row.
pub(crate) fn one_hot(len: usize, row: usize, key: &Key) -> Vec<f64> {
    let mut values = vec![0.0; len];
    values
        .par_chunks_mut(row.max(1))
        .enumerate()
        .for_each(|(index, slots)| {
            let place = key.block(index as u64).below(slots.len() as u64);
            slots[place as usize] = 1.0;
        });
    values
}

/// Ascending offsets from 0 to `total` per row: one part holds about half, about a quarter of the parts are empty.
pub(crate) fn partition(len: usize, row: usize, total: u64, key: &Key) -> Vec<f64> {
    let mut values = vec![0.0; len];
    values
        .par_chunks_mut(row.max(1))
        .enumerate()
        .for_each(|(index, offsets)| {
            let parts = offsets.len().saturating_sub(1);
            if parts == 0 {
                return;
            }
            let mut stream = key.block(index as u64);
            let dominant = stream.below(parts as u64) as usize;
            let empty = if parts >= 4 {
                (dominant + 1 + stream.below(parts as u64 - 1) as usize) % parts
            } else {
                parts
            };
            let weights: Vec<f64> = (0..parts)
                .map(|part| {
                    let (coin, weight) = (stream.below(4), stream.unit());
                    if part == dominant || part == empty || coin == 0 {
                        0.0
                    } else {
                        weight
                    }
                })
                .collect();
            let sum: f64 = weights.iter().sum();
            let share = if sum == 0.0 { total } else { total.div_ceil(2) };
            let rest = (total - share) as f64;
            let (mut before, mut dominated) = (0.0, 0);
            for part in 0..parts {
                before += weights[part];
                if part == dominant {
                    dominated = share;
                }
                let light = if sum == 0.0 {
                    0.0
                } else {
                    libm::floor(rest * (before / sum))
                };
                offsets[part + 1] = light + dominated as f64;
            }
            // The cumulative sum of weights may miss the total by a rounding.
            offsets[parts] = total as f64;
            for offset in &mut offsets[1..parts] {
                *offset = offset.min(total as f64);
            }
        });
    values
}
