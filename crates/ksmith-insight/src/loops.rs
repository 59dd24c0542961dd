//! Loops as address ranges: a branch to a lower address closes one. This is what both assemblers' output allows without
//! a full control-flow graph; code that a compiler moved out of line is not counted to its loop.

use serde::{Deserialize, Serialize};

/// A loop: from the target of its back edges to the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopRange {
    /// Address of the first instruction.
    pub start: u64,
    /// Address of the last branch back.
    pub end: u64,
    /// How many loops hold this one; 0 is outermost.
    pub depth: u32,
    /// Whether no loop lies within it.
    pub innermost: bool,
}

impl LoopRange {
    /// Whether an address lies within.
    pub fn holds(&self, address: u64) -> bool {
        (self.start..=self.end).contains(&address)
    }
}

/// Finds loops from branches `(from, to)`; branches of an instruction to itself (padding) are no loops.
pub(crate) fn find(branches: impl IntoIterator<Item = (u64, u64)>) -> Vec<LoopRange> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (from, to) in branches {
        if to >= from {
            continue;
        }
        match ranges.iter_mut().find(|(start, _)| *start == to) {
            Some((_, end)) => *end = (*end).max(from),
            None => ranges.push((to, from)),
        }
    }
    ranges.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
    let within = |(start, end): &(u64, u64), (outer, last): &(u64, u64)| {
        outer <= start && end <= last && (outer, last) != (start, end)
    };
    let count = |range: &(u64, u64)| ranges.iter().filter(|other| within(range, other)).count();
    ranges
        .iter()
        .map(|range| LoopRange {
            start: range.0,
            end: range.1,
            depth: u32::try_from(count(range)).unwrap_or(u32::MAX),
            innermost: !ranges.iter().any(|other| within(other, range)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_loops_are_told_apart_and_several_exits_are_one_loop() {
        let loops = find([(100, 10), (60, 40), (50, 40), (200, 200), (5, 90)]);
        let expected = [
            LoopRange {
                start: 10,
                end: 100,
                depth: 0,
                innermost: false,
            },
            LoopRange {
                start: 40,
                end: 60,
                depth: 1,
                innermost: true,
            },
        ];
        assert_eq!(loops, expected);
    }
}
