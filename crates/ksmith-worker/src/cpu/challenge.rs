//! One challenge: wake, reveal, clock, answer, clock, look, stop, check.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::buffers::Buffers;
use super::memory::Pinned;
use super::page::{self, Answers};
use super::worker::{Worker, protocol};
use super::{Call, CallOptions, Fault, FaultKind, Probe, Wait, WorkerError};

/// A worker that does not wake up in this time is stuck in the candidate's code.
const WAKE_LIMIT: Duration = Duration::from_secs(2);
/// How long a side that may sleep spins first.
const PATIENCE: Duration = Duration::from_micros(50);

/// Run-delay of the calling thread.
fn own_run_delay() -> Option<u64> {
    thread_local! {
        static FILE: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    FILE.with(|file| {
        let mut buffer = [0u8; 96];
        let count = file.as_ref()?.read_at(&mut buffer, 0).ok()?;
        std::str::from_utf8(&buffer[..count])
            .ok()?
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    })
}

impl Worker {
    pub(super) fn ring(&self) {
        self.commands().bell.fetch_add(1, Ordering::Release);
        if self.wait == Wait::Hybrid {
            page::ring(&self.commands().bell);
        }
    }

    /// Spins until `word` has `value`; anything but the value before is a broken protocol.
    pub(super) fn await_answer(
        &mut self,
        word: fn(&Answers) -> &AtomicU64,
        value: u64,
        limit: Duration,
    ) -> Result<(), Fault> {
        let started = Instant::now();
        let mut next_look = PATIENCE;
        loop {
            for _ in 0..64 {
                let now = word(self.answers()).load(Ordering::Acquire);
                if now == value {
                    return Ok(());
                }
                if now.wrapping_add(1) != value {
                    return Err(protocol("an answer out of order"));
                }
                std::hint::spin_loop();
            }
            let elapsed = started.elapsed();
            if elapsed > next_look {
                next_look = elapsed + PATIENCE;
                if let Some(ended) = self.child.try_wait() {
                    return Err(self.fault_of(ended));
                }
                if elapsed > limit {
                    return Err(FaultKind::Timeout.into());
                }
                if self.wait == Wait::Hybrid {
                    let bell = self.answers().bell.load(Ordering::Acquire);
                    if word(self.answers()).load(Ordering::Acquire) != value {
                        page::sleep_on(&self.answers().bell, bell, 1_000_000);
                    }
                }
            }
        }
    }

    /// One challenge on one slot: start the clock, wait, stop the clock, read `early`, freeze, check canaries.
    pub fn call(&mut self, slot: usize, options: &CallOptions) -> Result<Call, WorkerError> {
        self.challenge(slot, 1, options)
    }

    /// Slots `0..k` revealed together and timed as one, for the slope test. `early` is read from slot 0.
    pub fn call_batch(&mut self, k: usize, options: &CallOptions) -> Result<Call, WorkerError> {
        self.challenge(0, k, options)
    }

    fn challenge(&mut self, first: usize, count: usize, options: &CallOptions) -> Result<Call, WorkerError> {
        if self.dead {
            return Err(WorkerError::Dead);
        }
        let fits = |buffers: &Buffers| count > 0 && first.saturating_add(count) <= buffers.slots;
        let Some(mut buffers) = self.buffers.take_if(|buffers| fits(buffers)) else {
            return Err(WorkerError::Layout(format!(
                "there are no slots {first} to {}",
                first + count
            )));
        };
        let late = buffers.hide(first, count, &mut self.dice);
        let pinned = Pinned::to(self.judge_cpu);
        let awake = self.wake();
        // From here to the start of the clock only the late lines are written.
        buffers.reveal(&late);
        self.buffers = Some(buffers);
        let result = awake.and_then(|()| self.timed(first, count, options));
        drop(pinned);
        match result {
            Ok(call) => Ok(call),
            Err(WorkerError::Fault(fault)) => self.fail(fault),
            Err(error) => Err(error),
        }
    }

    /// Thaws the worker and waits until it listens.
    fn wake(&mut self) -> Result<(), WorkerError> {
        self.ping += 1;
        self.commands().ping.store(self.ping, Ordering::Release);
        self.ring();
        self.child.thaw()?;
        self.await_answer(|answers| &answers.pong, self.ping, WAKE_LIMIT)
            .map_err(WorkerError::Fault)
    }

    fn timed(&mut self, first: usize, count: usize, options: &CallOptions) -> Result<Call, WorkerError> {
        let (judge_before, worker_before) = (own_run_delay(), self.child.run_delay_ns());
        self.sequence += 1;
        let commands = self.commands();
        commands.first.store(first as u64, Ordering::Relaxed);
        commands.count.store(count as u64, Ordering::Relaxed);
        let started = Instant::now();
        commands.sequence.store(self.sequence, Ordering::Release);
        if self.wait == Wait::Hybrid {
            self.ring();
        }
        let answer = self.await_answer(|answers| &answers.done, self.sequence, options.deadline);
        let elapsed = started.elapsed();
        answer?;
        // At once, before the worker is stopped: work that goes on behind the answer shows here.
        let early = self.peek(first, &options.early);
        let (judge_after, worker_after) = (own_run_delay(), self.child.run_delay_ns());
        self.freeze()?;
        if let Some(ended) = self.child.try_wait() {
            return Err(WorkerError::Fault(self.fault_of(ended)));
        }
        if self.answers().control_bits.load(Ordering::Relaxed) != 0 {
            return Err(WorkerError::Fault(FaultKind::ControlBits.into()));
        }
        if let Some(fault) = self
            .buffers
            .as_ref()
            .and_then(|buffers| buffers.damage(first, count))
        {
            return Err(WorkerError::Fault(fault));
        }
        Ok(Call {
            ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            judge_preempted: judge_before != judge_after,
            worker_preempted: worker_before != worker_after,
            early,
        })
    }

    fn peek(&self, slot: usize, probes: &[Probe]) -> Vec<u64> {
        let Some(buffers) = &self.buffers else {
            return Vec::new();
        };
        let read = |probe: &Probe| {
            let buffer = buffers.get(slot, probe.placement)?;
            let offset = usize::try_from(probe.offset).ok()?;
            let inside = offset.checked_add(usize::from(probe.bytes.min(8)))? <= buffer.bytes;
            inside.then(|| {
                buffers
                    .memory(buffer)
                    .peek(buffer.range().start + offset, probe.bytes.min(8))
            })
        };
        probes.iter().map(|probe| read(probe).unwrap_or(0)).collect()
    }
}
