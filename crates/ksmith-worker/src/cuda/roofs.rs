//! What this device can do at best: times of the judge's own copy, write and read from cold caches.

use super::checks::{COPIES, Checks, READ_ALL, address};
use super::error::CudaError;
use super::owner::{Buffer, BufferAccess, Owner};
use super::plan::Launch;

/// Times of our own kernels over the same number of bytes from cold caches, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roofs {
    /// Half of the bytes read and written elsewhere, by the fastest of several copies.
    pub copy: Vec<u64>,
    /// Which copy that is.
    pub copied_by: &'static str,
    /// All of them written.
    pub write: Vec<u64>,
    /// All of them read.
    pub read: Vec<u64>,
}

/// Threads of a block of our own copies.
const THREADS: u32 = 256;

/// Places in memory that are tried: freshly freed memory moved a tenth slower (seen on an H200).
const PLACES: usize = 3;

impl Roofs {
    /// The better of two measurements of the same bytes, kernel by kernel.
    pub fn better(self, other: &Self) -> Self {
        let pick = |one: Vec<u64>, other: &Vec<u64>| {
            if median(other) < median(&one) {
                other.clone()
            } else {
                one
            }
        };
        let copied_by = if median(&other.copy) < median(&self.copy) {
            other.copied_by
        } else {
            self.copied_by
        };
        Self {
            copy: pick(self.copy, &other.copy),
            copied_by,
            write: pick(self.write, &other.write),
            read: pick(self.read, &other.read),
        }
    }
}

impl Checks {
    /// Times our own copies, write and read of `bytes`, `calls` times each, in the best of several places in memory.
    ///
    /// # Errors
    /// When the device fails.
    pub fn roofs(&self, owner: &Owner, bytes: usize, calls: usize) -> Result<Roofs, CudaError> {
        let bytes = bytes.next_multiple_of(32);
        let mut held = Vec::new();
        let mut best: Option<Roofs> = None;
        for _ in 0..PLACES {
            let pair = owner
                .buffer(bytes, 256, BufferAccess::Input)
                .and_then(|from| Ok((from, owner.buffer(bytes, 256, BufferAccess::Output)?)));
            // Where memory is short, one place is enough.
            let (from, to) = match pair {
                Ok(pair) => pair,
                Err(_) if best.is_some() => break,
                Err(error) => return Err(error),
            };
            let found = self.roofs_between(owner, &from, &to, bytes, calls)?;
            best = Some(match best {
                Some(best) => best.better(&found),
                None => found,
            });
            held.push((from, to));
        }
        best.ok_or_else(|| CudaError::Unavailable("no memory for our own copies".to_owned()))
    }

    fn roofs_between(
        &self,
        owner: &Owner,
        from: &Buffer,
        to: &Buffer,
        bytes: usize,
        calls: usize,
    ) -> Result<Roofs, CudaError> {
        let (context, flush) = (owner.context(), owner.flush_buffer());
        owner.poison(from, 1)?;
        context.synchronize()?;
        let (start, end) = (context.event()?, context.event()?);
        let timed = |work: &dyn Fn() -> Result<(), CudaError>| -> Result<Vec<u64>, CudaError> {
            let mut times = Vec::with_capacity(calls);
            for _ in 0..calls {
                self.stream.fill(flush.address(), 0, flush.bytes())?;
                self.stream.record(&start)?;
                work()?;
                self.stream.record(&end)?;
                self.stream.synchronize()?;
                times.push((f64::from(end.since(&start)?) * 1e6) as u64);
            }
            Ok(times)
        };
        let words = bytes / 16;
        let mut copies = vec![(
            "driver",
            timed(&|| self.stream.copy(to.address(), from.address(), bytes / 2))?,
        )];
        let moved = words / 2;
        let params = [address(from), address(to), (moved as i64).to_le_bytes().to_vec()];
        for (name, kernel, each) in COPIES {
            let blocks = moved.div_ceil(THREADS as usize * each).max(1);
            let launch = Launch {
                kernel,
                grid: [u32::try_from(blocks).unwrap_or(u32::MAX >> 1), 1, 1],
                block: [THREADS, 1, 1],
                cluster: None,
                shared: 0,
                cooperative: false,
                pdl: false,
            };
            let times = timed(&|| self.stream.launch(&self.functions[kernel], &launch, &params))?;
            copies.push((name, times));
        }
        let (copied_by, copy) = copies
            .into_iter()
            .min_by_key(|(_, times)| median(times))
            .unwrap_or_default();
        let read = self.shape(owner, READ_ALL, words);
        let params = [
            address(from),
            (words as i64).to_le_bytes().to_vec(),
            address(&self.result),
        ];
        Ok(Roofs {
            copy,
            copied_by,
            write: timed(&|| self.stream.fill(to.address(), 1, bytes))?,
            read: timed(&|| self.stream.launch(&self.functions[READ_ALL], &read, &params))?,
        })
    }
}

fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(u64::MAX)
}
