//! Natural loops from a control-flow graph: a branch to a block that dominates it closes one.
//!
//! Address order alone is not enough: compilers put the retry of a wait out of line, behind the function, and its jump
//! back would look like a loop around everything between. Dominators are computed as by Cooper, Harvey and Kennedy (A
//! Simple, Fast Dominance Algorithm, 2001).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopRange {
    /// Address of its first instruction.
    pub start: u64,
    /// Address of its last instruction.
    pub end: u64,
    /// How many loops hold this one; 0 is outermost.
    pub depth: u32,
    /// Whether no loop lies within it.
    pub innermost: bool,
    /// Its blocks, first and last address each, in order.
    pub blocks: Vec<(u64, u64)>,
}

impl LoopRange {
    /// Whether the instruction at an address belongs to the loop.
    pub fn holds(&self, address: u64) -> bool {
        self.blocks
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&address))
    }
}

/// One instruction as the graph needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) address: u64,
    /// Target of a branch within the function.
    pub(crate) target: Option<u64>,
    /// Whether control may go on to the next instruction.
    pub(crate) falls: bool,
    /// Whether a block ends here.
    pub(crate) ends: bool,
}

/// Finds natural loops in the instructions of one function, in order of address.
pub(crate) fn find(nodes: &[Node]) -> Vec<LoopRange> {
    let graph = Graph::of(nodes);
    let dominators = graph.dominators();
    let mut bodies: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (from, successors) in graph.successors.iter().enumerate() {
        for to in successors
            .iter()
            .copied()
            .filter(|to| dominates(&dominators, *to, from))
        {
            let body = bodies.entry(to).or_insert_with(|| BTreeSet::from([to]));
            let mut open = vec![from];
            while let Some(block) = open.pop() {
                if body.insert(block) {
                    open.extend(&graph.predecessors[block]);
                }
            }
        }
    }
    // A block that jumps to itself and does nothing else is padding or a wait for ever.
    bodies.retain(|header, body| body.len() > 1 || graph.blocks[*header].0 != graph.blocks[*header].1);
    let within = |inner: &BTreeSet<usize>, outer: &BTreeSet<usize>| {
        inner.len() < outer.len() && inner.is_subset(outer)
    };
    bodies
        .values()
        .map(|body| {
            let blocks: Vec<(u64, u64)> = body.iter().map(|block| graph.blocks[*block]).collect();
            LoopRange {
                start: blocks.iter().map(|(first, _)| *first).min().unwrap_or(0),
                end: blocks.iter().map(|(_, last)| *last).max().unwrap_or(0),
                depth: count(bodies.values().filter(|other| within(body, other)).count()),
                innermost: !bodies.values().any(|other| within(other, body)),
                blocks,
            }
        })
        .collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

struct Graph {
    /// First and last address of each block, in order of address.
    blocks: Vec<(u64, u64)>,
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

impl Graph {
    fn of(nodes: &[Node]) -> Self {
        let mut leaders: BTreeSet<u64> = nodes.iter().filter_map(|node| node.target).collect();
        leaders.extend(nodes.first().map(|node| node.address));
        leaders.extend(
            nodes
                .windows(2)
                .filter(|pair| pair[0].ends)
                .map(|pair| pair[1].address),
        );
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        let mut last: Vec<Node> = Vec::new();
        for node in nodes {
            match (blocks.last_mut(), last.last_mut()) {
                (Some(block), Some(end)) if !leaders.contains(&node.address) => {
                    block.1 = node.address;
                    *end = *node;
                }
                _ => {
                    blocks.push((node.address, node.address));
                    last.push(*node);
                }
            }
        }
        let starts: BTreeMap<u64, usize> = blocks
            .iter()
            .enumerate()
            .map(|(index, block)| (block.0, index))
            .collect();
        let mut successors = vec![Vec::new(); blocks.len()];
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (index, end) in last.iter().enumerate() {
            let next = (end.falls && index + 1 < blocks.len()).then_some(index + 1);
            let jump = end.target.and_then(|target| starts.get(&target).copied());
            for to in next.into_iter().chain(jump) {
                if !successors[index].contains(&to) {
                    successors[index].push(to);
                    predecessors[to].push(index);
                }
            }
        }
        Self {
            blocks,
            successors,
            predecessors,
        }
    }

    /// Blocks in reverse post-order from the entry; what cannot be reached is left out.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.blocks.len()];
        let mut open: Vec<(usize, usize)> = Vec::new();
        if !self.blocks.is_empty() {
            open.push((0, 0));
            seen[0] = true;
        }
        while let Some((block, next)) = open.pop() {
            match self.successors[block].get(next) {
                Some(to) => {
                    open.push((block, next + 1));
                    if !seen[*to] {
                        seen[*to] = true;
                        open.push((*to, 0));
                    }
                }
                None => order.push(block),
            }
        }
        order.reverse();
        order
    }

    /// The immediate dominator of each block; `None` where it cannot be reached. The entry dominates itself.
    fn dominators(&self) -> Vec<Option<usize>> {
        let order = self.order();
        let mut place = vec![usize::MAX; self.blocks.len()];
        for (index, block) in order.iter().enumerate() {
            place[*block] = index;
        }
        let mut dominators: Vec<Option<usize>> = vec![None; self.blocks.len()];
        if let Some(entry) = order.first() {
            dominators[*entry] = Some(*entry);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().skip(1) {
                let mut known = self.predecessors[*block]
                    .iter()
                    .copied()
                    .filter(|from| dominators[*from].is_some());
                let Some(mut best) = known.next() else { continue };
                for mut other in known {
                    while best != other {
                        let later = if place[best] > place[other] {
                            &mut best
                        } else {
                            &mut other
                        };
                        let Some(up) = dominators[*later] else { break };
                        *later = up;
                    }
                }
                if dominators[*block] != Some(best) {
                    dominators[*block] = Some(best);
                    changed = true;
                }
            }
        }
        dominators
    }
}

/// Whether `upper` lies on the path from `lower` to the entry in the tree of dominators.
fn dominates(dominators: &[Option<usize>], upper: usize, lower: usize) -> bool {
    let mut block = lower;
    loop {
        if block == upper {
            return dominators[block].is_some();
        }
        match dominators[block] {
            Some(up) if up != block => block = up,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Instructions at 0, 1, 2, …; `branches` are `(from, to, conditional)`, the last instruction ends the function.
    fn nodes(count: u64, branches: &[(u64, u64, bool)]) -> Vec<Node> {
        (0..count)
            .map(|address| {
                let branch = branches.iter().find(|(from, _, _)| *from == address);
                Node {
                    address,
                    target: branch.map(|(_, to, _)| *to),
                    falls: branch.is_none_or(|(_, _, conditional)| *conditional) && address + 1 < count,
                    ends: branch.is_some(),
                }
            })
            .collect()
    }

    #[test]
    fn nested_loops_are_told_apart_and_several_back_edges_are_one_loop() {
        let loops = find(&nodes(20, &[(6, 3, true), (8, 3, true), (15, 1, true)]));
        let told: Vec<(u64, u64, u32, bool)> = loops
            .iter()
            .map(|range| (range.start, range.end, range.depth, range.innermost))
            .collect();
        assert_eq!(told, [(1, 15, 0, false), (3, 8, 1, true)]);
    }

    #[test]
    fn a_retry_out_of_line_is_a_small_loop_and_none_around_the_rest() {
        // 3: try, 4: branch to the stub at 18 if it failed, 5 … 12: loop, 16: end; 18: try again, 19: back to 18, 20: go on.
        let mut list = nodes(
            21,
            &[
                (4, 18, true),
                (12, 2, true),
                (16, 16, false),
                (19, 18, true),
                (20, 5, false),
            ],
        );
        list[16].target = None;
        let told: Vec<(u64, u64, bool, bool)> = find(&list)
            .iter()
            .map(|range| (range.start, range.end, range.innermost, range.holds(15)))
            .collect();
        assert_eq!(told, [(2, 20, false, false), (18, 19, true, false)]);
    }

    #[test]
    fn padding_is_no_loop_and_nothing_has_none() {
        assert_eq!(find(&nodes(5, &[(3, 3, false)])), Vec::new());
        assert_eq!(find(&[]), Vec::new());
    }

    proptest! {
        #[test]
        fn any_graph_gives_loops_that_nest_or_are_apart(
            branches in proptest::collection::vec((0u64..60, 0u64..60, any::<bool>()), 0..30),
        ) {
            let loops = find(&nodes(60, &branches));
            for one in &loops {
                prop_assert!(one.holds(one.start) && one.holds(one.end) && one.start <= one.end);
                prop_assert!(one.innermost || loops.iter().any(|other| other.depth > one.depth));
            }
        }
    }
}
