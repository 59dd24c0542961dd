//! Where buffers lie: addresses, guard pages, slack and canaries, lines that are revealed late.

use super::layout::{Access, Edge, Layout, Placement};
use super::memory::{Memory, PAGE, WorkerMay, random};
use super::page::{MAX_FLOATS, MAX_INTEGERS, MAX_SEGMENTS, MAX_SLOTS};
use super::{Fault, FaultKind, Scalar, Side, WorkerError};

/// Lines of the inputs that stay wrong until just before the clock starts: at least so many, and one in every stretch
/// of [`LATE_STRETCH`] bytes, so that no row of some size can be computed before.
const LATE_LINES: usize = 16;
const LATE_STRETCH: usize = 2048;
const LINE: usize = 64;

/// A small generator for canaries, addresses and late lines; its seed is secret and comes from the kernel.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new() -> Result<Self, WorkerError> {
        random().map(Self).map_err(|source| WorkerError::Io {
            what: "ask for random bytes",
            source,
        })
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).unwrap_or(0)
    }
}

/// One tensor in one slot.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) access: Access,
    /// Offset of the mapped region in its memory, and its length: whole pages.
    pub(super) region: usize,
    pub(super) region_length: usize,
    /// The tensor within the region.
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// Address of the region in the worker.
    pub(super) address: u64,
    canary: Vec<u8>,
}

impl Buffer {
    pub(super) fn writable(&self) -> bool {
        self.access != Access::Input
    }

    /// The tensor's range in its memory.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.region + self.start..self.region + self.start + self.bytes
    }

    fn slack(&self) -> [std::ops::Range<usize>; 2] {
        let range = self.range();
        [
            self.region..range.start,
            range.end..self.region + self.region_length,
        ]
    }
}

/// All buffers of a layout, with their two memories.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) read_only: Memory,
    pub(super) writable: Memory,
    /// By slot, then by placement.
    pub(super) all: Vec<Buffer>,
    pub(super) placements: usize,
    pub(super) slots: usize,
}

/// Where a process' own allocator would put large blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Behind its heap, which ends here.
    Above(u64),
    /// Before the lowest of its libraries and stacks, which starts here.
    Below(u64),
}

/// Mappings above this belong to libraries, stacks and what the kernel placed.
const LIBRARIES: u64 = 0x7000_0000_0000;

impl Home {
    /// Reads them from the text of a process' `maps`.
    pub(super) fn of(maps: &str) -> Vec<Self> {
        let ranges = maps.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let parse = |text| u64::from_str_radix(text, 16).ok();
            Some((parse(start)?, parse(end)?, rest.ends_with("[heap]")))
        });
        let (mut heap, mut lowest) = (None, u64::MAX);
        for (start, end, is_heap) in ranges {
            if is_heap {
                heap = Some(Self::Above(end));
            } else if start >= LIBRARIES {
                lowest = lowest.min(start);
            }
        }
        let below = (lowest < u64::MAX).then_some(Self::Below(lowest));
        heap.into_iter().chain(below).collect()
    }
}

fn refuse<T>(what: String) -> Result<T, WorkerError> {
    Err(WorkerError::Layout(what))
}

/// Checks that the arguments fit the registers of one call.
pub(super) fn check(layout: &Layout) -> Result<(), WorkerError> {
    let floats = layout
        .scalars
        .iter()
        .filter(|scalar| !matches!(scalar, Scalar::Int(_)))
        .count();
    let integers = layout.placements.len() + layout.scalars.len() - floats + layout.axes.len();
    if integers > MAX_INTEGERS || floats > MAX_FLOATS {
        return refuse(format!(
            "{integers} pointers, integers and axes and {floats} floating-point scalars: at most {MAX_INTEGERS} and {MAX_FLOATS} can be passed"
        ));
    }
    if layout.slots == 0 || layout.slots > MAX_SLOTS || layout.slots * layout.placements.len() > MAX_SEGMENTS
    {
        return refuse(format!(
            "{} slots: between 1 and {MAX_SLOTS} are possible",
            layout.slots
        ));
    }
    for placement in &layout.placements {
        if !placement.align.is_power_of_two() || placement.align > PAGE {
            return refuse(format!(
                "alignment {} of `{}` is no power of two up to {PAGE}",
                placement.align, placement.name
            ));
        }
        if placement.bytes > 1 << 40 {
            return refuse(format!("`{}` has {} bytes", placement.name, placement.bytes));
        }
    }
    Ok(())
}

fn place(placement: &Placement, region: usize, dice: &mut Dice) -> Buffer {
    let bytes = placement.bytes as usize;
    let align = placement.align as usize;
    let aligned = bytes.next_multiple_of(align);
    let page = PAGE as usize;
    let touching = aligned.next_multiple_of(page).max(page);
    let (region_length, start) = match placement.edge {
        Edge::Start => (touching, 0),
        Edge::End => (touching, touching - aligned),
        // One page more, of which some steps lie before the first byte and some behind the last.
        Edge::Neither => (touching + page, align * (1 + dice.below(page / align - 1))),
    };
    let name = placement.name.clone();
    Buffer {
        name,
        access: placement.access,
        region,
        region_length,
        start,
        bytes,
        address: 0,
        canary: Vec::new(),
    }
}

impl Buffers {
    /// Makes both memories, zeroed, with canaries in all slack.
    pub(super) fn new(layout: &Layout, dice: &mut Dice) -> Result<Self, WorkerError> {
        check(layout)?;
        let (mut read_only, mut writable) = (0, 0);
        let mut all = Vec::new();
        for _ in 0..layout.slots {
            for placement in &layout.placements {
                let end = if placement.access == Access::Input {
                    &mut read_only
                } else {
                    &mut writable
                };
                let buffer = place(placement, *end, dice);
                *end += buffer.region_length;
                all.push(buffer);
            }
        }
        let memory = |bytes: usize, may| {
            Memory::new(bytes as u64, may).map_err(|source| WorkerError::Io {
                what: "make memory for buffers",
                source,
            })
        };
        let mut buffers = Self {
            read_only: memory(read_only, WorkerMay::Read)?,
            writable: memory(writable, WorkerMay::Write)?,
            all,
            placements: layout.placements.len(),
            slots: layout.slots,
        };
        // Touched here, so that the memory is the judge's and not the worker's.
        buffers.read_only.bytes_mut().fill(0);
        buffers.writable.bytes_mut().fill(0);
        for buffer in &mut buffers.all {
            let memory = if buffer.writable() {
                buffers.writable.bytes_mut()
            } else {
                buffers.read_only.bytes_mut()
            };
            for range in buffer.slack() {
                for byte in &mut memory[range] {
                    *byte = dice.next() as u8 | 1;
                    buffer.canary.push(*byte);
                }
            }
        }
        Ok(buffers)
    }

    /// Chooses fresh addresses: far from each other and from everything the loader uses; or in some order a few pages
    /// apart, as one allocator would give them, at one of `homes` or anywhere. A kernel must not tell its host by
    /// addresses or distances.
    pub(super) fn scatter(&mut self, homes: &[Home], dice: &mut Dice) {
        const LOWEST: u64 = 0x1000_0000_0000;
        const SPAN: u64 = 0x3000_0000_0000;
        /// Guard pages of two neighbours, and up to so many pages more.
        const GAP: usize = 64;
        let somewhere = |dice: &mut Dice| LOWEST + (dice.next() % SPAN) / PAGE * PAGE;
        // Half of the layouts near each other, half of these at home.
        let home = homes.get(dice.below(2 * homes.len()));
        if dice.below(2) == 0 {
            for buffer in &mut self.all {
                buffer.address = somewhere(dice);
            }
            return;
        }
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, dice.below(last + 1));
        }
        let gaps: Vec<u64> = order
            .iter()
            .map(|_| (2 + dice.below(GAP) as u64) * PAGE)
            .collect();
        let lengths = self.all.iter().map(|buffer| buffer.region_length as u64);
        let whole = lengths.sum::<u64>() + gaps.iter().sum::<u64>();
        let mut next = match home {
            Some(Home::Above(end)) => end + (2 + dice.below(GAP) as u64) * PAGE,
            Some(Home::Below(start)) => start
                .saturating_sub(whole + (2 + dice.below(GAP) as u64) * PAGE)
                .max(LOWEST),
            None => somewhere(dice),
        };
        for (index, gap) in order.into_iter().zip(gaps) {
            let Some(buffer) = self.all.get_mut(index) else {
                continue;
            };
            buffer.address = next;
            next += buffer.region_length as u64 + gap;
        }
    }

    pub(super) fn get(&self, slot: usize, placement: usize) -> Option<&Buffer> {
        (slot < self.slots && placement < self.placements)
            .then(|| &self.all[slot * self.placements + placement])
    }

    pub(super) fn memory(&self, buffer: &Buffer) -> &Memory {
        if buffer.writable() {
            &self.writable
        } else {
            &self.read_only
        }
    }

    /// The tensor's bytes; empty if there is no such buffer.
    pub(super) fn bytes(&self, slot: usize, placement: usize) -> &[u8] {
        self.get(slot, placement)
            .map_or(&[], |buffer| &self.memory(buffer).bytes()[buffer.range()])
    }

    pub(super) fn bytes_mut(&mut self, slot: usize, placement: usize) -> &mut [u8] {
        match self
            .get(slot, placement)
            .map(|buffer| (buffer.writable(), buffer.range()))
        {
            Some((true, range)) => &mut self.writable.bytes_mut()[range],
            Some((false, range)) => &mut self.read_only.bytes_mut()[range],
            None => &mut [],
        }
    }

    /// The first damaged canary of these slots.
    pub(super) fn damage(&self, first: usize, count: usize) -> Option<Fault> {
        let slots = self
            .all
            .iter()
            .skip(first * self.placements)
            .take(count * self.placements);
        for buffer in slots.filter(|buffer| buffer.writable()) {
            let [before, after] = buffer.slack();
            let memory = self.writable.bytes();
            let (expected_before, expected_after) = buffer.canary.split_at(before.len());
            let side = if memory[before] != *expected_before {
                Side::Before
            } else if memory[after] != *expected_after {
                Side::After
            } else {
                continue;
            };
            return Some(Fault {
                kind: FaultKind::Canary,
                buffer: Some(buffer.name.clone()),
                side: Some(side),
            });
        }
        None
    }

    /// The buffer whose region or guard pages hold this address of the worker.
    pub(super) fn locate(&self, address: u64) -> Option<(&Buffer, Side)> {
        let buffer = self.all.iter().find(|buffer| {
            let low = buffer.address.saturating_sub(PAGE);
            (low..buffer.address + buffer.region_length as u64 + PAGE).contains(&address)
        })?;
        let start = buffer.address + buffer.start as u64;
        let side = if address < start {
            Side::Before
        } else if address < start + buffer.bytes as u64 {
            Side::Inside
        } else {
            Side::After
        };
        Some((buffer, side))
    }

    /// Replaces some lines of the inputs by other ones of the same tensor; undone by [`Buffers::reveal`].
    ///
    /// Between the thaw and the start of the clock hostile code may already run on what it sees: what it computes then
    /// is wrong somewhere.
    pub(super) fn hide(&mut self, first: usize, count: usize, dice: &mut Dice) -> Vec<Late> {
        let candidates: Vec<(bool, std::ops::Range<usize>)> = self
            .all
            .iter()
            .skip(first * self.placements)
            .take(count * self.placements)
            .filter(|buffer| buffer.access != Access::Output && buffer.bytes >= 2 * LINE)
            .map(|buffer| (buffer.writable(), buffer.range()))
            .collect();
        if candidates.is_empty() {
            return Vec::new();
        }
        let stretches = candidates.iter().flat_map(|(writable, range)| {
            let stretches = range.clone().step_by(LATE_STRETCH);
            stretches.map(move |start| (*writable, range.clone(), start))
        });
        let mut places: Vec<(bool, std::ops::Range<usize>, usize, usize)> = stretches
            .map(|(writable, range, start)| {
                let lines = (range.end - start).min(LATE_STRETCH) / LINE;
                let at = start + dice.below(lines.max(1)) * LINE;
                (writable, range.clone(), at, range.start)
            })
            .filter(|(_, range, at, _)| at + LINE <= range.end)
            .collect();
        while places.len() < LATE_LINES {
            let (writable, range) = candidates[dice.below(candidates.len())].clone();
            let at = range.start + dice.below(range.len() / LINE) * LINE;
            places.push((writable, range.clone(), at, range.start));
        }
        places
            .into_iter()
            .map(|(writable, range, at, start)| {
                let memory = if writable {
                    self.writable.bytes_mut()
                } else {
                    self.read_only.bytes_mut()
                };
                let lines = range.len() / LINE;
                let other = start + dice.below(lines) * LINE;
                let mut bytes = [0u8; LINE];
                bytes.copy_from_slice(&memory[at..at + LINE]);
                memory.copy_within(other..other + LINE, at);
                Late { writable, at, bytes }
            })
            .collect()
    }

    /// Puts the true lines back, in the reverse order.
    pub(super) fn reveal(&mut self, late: &[Late]) {
        for line in late.iter().rev() {
            let memory = if line.writable {
                self.writable.bytes_mut()
            } else {
                self.read_only.bytes_mut()
            };
            memory[line.at..line.at + LINE].copy_from_slice(&line.bytes);
        }
    }
}

/// A line that is revealed late.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    writable: bool,
    at: usize,
    bytes: [u8; LINE],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(bytes: u64, align: u64, edge: Edge) -> Placement {
        Placement {
            name: "x".to_owned(),
            bytes,
            align,
            access: Access::InOut,
            edge,
        }
    }

    fn layout(placement: Placement) -> Layout {
        Layout {
            slots: 1,
            placements: vec![placement],
            scalars: Vec::new(),
            axes: Vec::new(),
        }
    }

    #[test]
    fn an_end_aligned_buffer_keeps_its_alignment_and_touches_the_guard_but_for_the_slack() {
        let mut dice = Dice(3);
        let buffer = place(&placement(100, 64, Edge::End), 0, &mut dice);
        assert_eq!((buffer.region_length, buffer.start), (4096, 4096 - 128));
        let buffer = place(&placement(4100, 4, Edge::End), 8192, &mut dice);
        assert_eq!(
            (buffer.region_length, buffer.start, buffer.range().end),
            (8192, 8192 - 4100, 16384)
        );
        let buffer = place(&placement(4100, 4, Edge::Start), 0, &mut dice);
        assert_eq!((buffer.region_length, buffer.start), (8192, 0));
        assert_eq!(place(&placement(0, 64, Edge::End), 0, &mut dice).start, 4096);
    }

    #[test]
    fn buffers_lie_near_and_far_and_never_over_each_other() {
        let mut dice = Dice::new().unwrap();
        let mut layout = layout(placement(10_000, 64, Edge::End));
        layout.slots = 6;
        let mut buffers = Buffers::new(&layout, &mut dice).unwrap();
        let homes = Home::of(
            "555555554000-555555580000 r-xp 00000000 00:00 0 /bin/helper\n\
             555555580000-5555555a1000 rw-p 00000000 00:00 0 [heap]\n\
             7ffff7d00000-7ffff7f00000 r-xp 00000000 00:00 0 /lib/libc.so.6\n\
             7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n",
        );
        assert_eq!(
            homes,
            [Home::Above(0x5555_555a_1000), Home::Below(0x7fff_f7d0_0000)]
        );
        let (mut near, mut at_home) = (0, 0);
        for _ in 0..64 {
            buffers.scatter(&homes, &mut dice);
            let mut ranges: Vec<(u64, u64)> = (0..6)
                .map(|slot| buffers.get(slot, 0).unwrap())
                .map(|buffer| (buffer.address, buffer.address + buffer.region_length as u64))
                .collect();
            ranges.sort_unstable();
            assert!(
                ranges.windows(2).all(|pair| pair[0].1 + 2 * PAGE <= pair[1].0),
                "{ranges:x?}"
            );
            near += u32::from(ranges[5].1 - ranges[0].0 < 1 << 32);
            let behind_the_heap = (0x5555_555a_2000..0x5555_5700_0000).contains(&ranges[0].0);
            let before_libraries = (0x7fff_f000_0000..0x7fff_f7cf_f001).contains(&ranges[5].1);
            at_home += u32::from(behind_the_heap || before_libraries);
        }
        assert!((10..=54).contains(&near), "{near} of 64");
        assert!((4..=40).contains(&at_home) && at_home < near, "{at_home} of 64");
    }

    #[test]
    fn a_buffer_at_neither_edge_has_slack_on_both_sides() {
        let mut dice = Dice(5);
        for (bytes, align) in [(100, 64), (4096, 4), (8192, 16), (0, 64), (5000, 2048)] {
            for _ in 0..20 {
                let buffer = place(&placement(bytes, align, Edge::Neither), 0, &mut dice);
                let [before, behind] = buffer.slack();
                assert!(
                    before.start < before.end && behind.start < behind.end,
                    "{buffer:?}"
                );
                assert_eq!(buffer.start as u64 % align, 0);
                assert_ne!(buffer.start as u64 % PAGE, 0);
            }
        }
    }

    #[test]
    fn hidden_lines_come_back_exactly() {
        let mut dice = Dice(7);
        let mut buffers = Buffers::new(&layout(placement(64 * 40 + 3, 64, Edge::End)), &mut dice).unwrap();
        for (index, byte) in buffers.bytes_mut(0, 0).iter_mut().enumerate() {
            *byte = (index / 64) as u8;
        }
        let before = buffers.bytes(0, 0).to_vec();
        let late = buffers.hide(0, 1, &mut dice);
        assert_ne!(buffers.bytes(0, 0), before);
        buffers.reveal(&late);
        assert_eq!(buffers.bytes(0, 0), before);
        assert_eq!(buffers.damage(0, 1), None);
    }

    #[test]
    fn one_changed_byte_of_slack_is_found_on_its_side() {
        let mut dice = Dice(1);
        let mut buffers = Buffers::new(&layout(placement(100, 64, Edge::End)), &mut dice).unwrap();
        let range = buffers.all[0].range();
        for (at, side) in [
            (range.start - 1, Side::Before),
            (range.end, Side::After),
            (range.end + 27, Side::After),
        ] {
            buffers.writable.bytes_mut()[at] ^= 1;
            assert_eq!(buffers.damage(0, 1).unwrap().side, Some(side));
            buffers.writable.bytes_mut()[at] ^= 1;
        }
        assert_eq!(buffers.damage(0, 1), None);
    }

    #[test]
    fn what_does_not_fit_the_registers_is_refused() {
        let mut many = layout(placement(4, 4, Edge::End));
        many.axes = vec![1; 32];
        assert!(check(&many).is_err());
        many.axes.pop();
        assert!(check(&many).is_ok());
        many.scalars = vec![Scalar::F32(1.0); 9];
        assert!(check(&many).is_err());
        assert!(check(&layout(placement(4, 3, Edge::End))).is_err());
        assert!(
            check(&Layout {
                slots: 0,
                ..layout(placement(4, 4, Edge::End))
            })
            .is_err()
        );
    }
}
