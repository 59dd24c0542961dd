//! The judge's half: starts a worker, gives it buffers, says what its end means.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ksmith_box::{BoxSpec, Child, Ended, Level, Limits, Profile};

use super::buffers::{Buffers, Dice, Home};
use super::memory::{self, Memory, WorkerMay};
use super::page::{self, Answers, Commands};
use super::{Fault, FaultKind, Layout, Scalar, Side, Wait, WorkerError, WorkerSpec};

/// Address space beyond the worker's own memory: buffers and their guards.
const ADDRESS_SPACE: u64 = 8 << 30;
/// Limit of everything that is no call: mapping, waking up.
const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// A running worker. It is frozen whenever no method of it is running, and killed when dropped.
#[derive(Debug)]
pub struct Worker {
    pub(super) child: Child,
    socket: OwnedFd,
    commands: Memory,
    answers: Memory,
    pub(super) buffers: Option<Buffers>,
    axes: Vec<i64>,
    pub(super) dice: Dice,
    pub(super) wait: Wait,
    pub(super) judge_cpu: usize,
    pub(super) sequence: u64,
    pub(super) ping: u64,
    layout: u64,
    pub(super) dead: bool,
}

/// Splits the CPUs: one for the judge, the others for the worker.
fn split_cpus(spec: &WorkerSpec) -> (usize, Vec<usize>) {
    let allowed = memory::allowed_cpus();
    let free = |cpu: &&usize| !spec.cpus.contains(*cpu);
    let judge = allowed
        .iter()
        .find(free)
        .or(allowed.first())
        .copied()
        .unwrap_or(0);
    if !spec.cpus.is_empty() {
        return (judge, spec.cpus.clone());
    }
    let others: Vec<usize> = allowed.iter().copied().filter(|&cpu| cpu != judge).collect();
    (
        judge,
        if others.is_empty() || spec.threads > others.len() {
            allowed
        } else {
            others
        },
    )
}

/// Foreign text, made harmless: printable ASCII, short.
fn harmless(text: &[u8]) -> String {
    let keep = |byte: &u8| {
        if (b' '..=b'~').contains(byte) {
            char::from(*byte)
        } else {
            '?'
        }
    };
    text.iter().take(400).map(keep).collect()
}

impl Worker {
    /// Starts a worker and loads the library. Death while loading is the candidate's fault.
    pub fn start(spec: &WorkerSpec) -> Result<Self, WorkerError> {
        let io = |what| move |source| WorkerError::Io { what, source };
        let commands =
            Memory::new(size_of::<Commands>() as u64, WorkerMay::Read).map_err(io("make memory"))?;
        let answers =
            Memory::new(size_of::<Answers>() as u64, WorkerMay::Write).map_err(io("make memory"))?;
        let (socket, theirs) = memory::message_pair().map_err(io("make a channel"))?;
        let (judge_cpu, cpus) = split_cpus(spec);
        let wait = if cpus.iter().any(|&cpu| cpu != judge_cpu) {
            spec.wait
        } else {
            Wait::Hybrid
        };
        let library = std::fs::canonicalize(&spec.library).map_err(io("find the library"))?;
        let limits = Limits {
            wall: None,
            cpu: None,
            memory_bytes: Some(spec.memory_bytes),
            address_space_bytes: Some(spec.memory_bytes.saturating_add(ADDRESS_SPACE)),
            file_bytes: Some(0),
            files: Some(64),
            processes: Some(spec.threads as u64 + 4 + u64::from(spec.rivals)),
            stack_bytes: Some(8 << 20),
            output_bytes: 0,
        };
        let profile = if spec.threads > 1 {
            Profile::WorkerThreads
        } else {
            Profile::Worker
        };
        let rivals = if profile == Profile::WorkerThreads {
            spec.rivals
        } else {
            0
        };
        let mut description = BoxSpec::role(super::ROLE.name, profile)
            .arg(library.display().to_string())
            .arg(&spec.entry)
            .arg(if wait == Wait::Hybrid { "hybrid" } else { "spin" })
            .arg(rivals.to_string())
            .read_only(&library)
            .fd(theirs)
            .fd(commands.descriptor().map_err(io("pass memory"))?)
            .fd(answers.descriptor().map_err(io("pass memory"))?)
            .limits(limits)
            .cpus(cpus)
            .nice(spec.nice)
            .least(spec.least);
        for folder in ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"] {
            description = description.read_only(folder);
        }
        if spec.unsandboxed {
            description = description.unsandboxed();
        }
        let child = ksmith_box::spawn(&description)?;
        drop(description);
        let mut worker = Self {
            child,
            socket,
            commands,
            answers,
            buffers: None,
            axes: Vec::new(),
            dice: Dice::new()?,
            wait,
            judge_cpu,
            sequence: 0,
            ping: 0,
            layout: 0,
            dead: false,
        };
        worker.await_load(spec.start_limit)?;
        worker.freeze()?;
        Ok(worker)
    }

    fn await_load(&mut self, limit: Duration) -> Result<(), WorkerError> {
        let deadline = Instant::now() + limit;
        loop {
            match self.answers().loaded.load(Ordering::Acquire) {
                0 => {}
                1 => return Ok(()),
                2 => {
                    let message = memory::read_text(self.socket.as_raw_fd()).unwrap_or_default();
                    return self.fail(
                        FaultKind::Load {
                            message: harmless(&message),
                        }
                        .into(),
                    );
                }
                _ => return self.fail(protocol("the load mark")),
            }
            if let Some(ended) = self.child.try_wait() {
                let fault = self.fault_of(ended);
                return self.fail(fault);
            }
            if Instant::now() >= deadline {
                return self.fail(FaultKind::Timeout.into());
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    pub(super) fn commands(&self) -> &Commands {
        page::commands(self.commands.start())
    }

    pub(super) fn answers(&self) -> &Answers {
        page::answers(self.answers.start())
    }

    /// Kills the worker and reports the fault.
    pub(super) fn fail<T>(&mut self, fault: Fault) -> Result<T, WorkerError> {
        self.dead = true;
        self.child.kill();
        Err(WorkerError::Fault(fault))
    }

    /// What the end of the process says about the candidate; address and signal are the worker's claims, used for
    /// naming a buffer only.
    pub(super) fn fault_of(&self, ended: Ended) -> Fault {
        let signal = match ended {
            Ended::Exited(code) => return FaultKind::Exited { code }.into(),
            Ended::TimedOut => return FaultKind::Timeout.into(),
            Ended::OutOfMemory => return FaultKind::OutOfMemory.into(),
            Ended::ForbiddenCall(name) => return FaultKind::ForbiddenCall { name }.into(),
            Ended::Killed => return protocol("the worker was killed"),
            Ended::Signal(signal) => signal,
        };
        let answers = self.answers();
        let claimed = answers.signal.load(Ordering::Acquire) == u64::try_from(signal).unwrap_or(0);
        let address = answers.address.load(Ordering::Relaxed);
        let place = self
            .buffers
            .as_ref()
            .filter(|_| claimed)
            .and_then(|buffers| buffers.locate(address));
        match place {
            Some((buffer, side)) => {
                let kind = match (buffer.writable(), side) {
                    (false, Side::Inside) => FaultKind::InputWrite,
                    _ => FaultKind::Crash { signal },
                };
                Fault {
                    kind,
                    buffer: Some(buffer.name.clone()),
                    side: Some(side),
                }
            }
            None => FaultKind::Crash { signal }.into(),
        }
    }

    pub(super) fn freeze(&mut self) -> Result<(), WorkerError> {
        Ok(self.child.freeze()?)
    }

    /// Gives the worker new buffers, at fresh addresses; the old ones are gone. Inputs are zero, outputs too.
    pub fn layout(&mut self, layout: &Layout) -> Result<(), WorkerError> {
        if self.dead {
            return Err(WorkerError::Dead);
        }
        let mut buffers = Buffers::new(layout, &mut self.dice)?;
        // Its own, so that it cannot lie about them; none where they cannot be read.
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.child.pid()));
        let homes = Home::of(&maps.unwrap_or_default());
        for attempt in 0.. {
            // What is in the way at home is not elsewhere.
            let homes = if attempt == 0 { &homes[..] } else { &[] };
            buffers.scatter(homes, &mut self.dice);
            let commands = self.commands();
            for (segment, buffer) in commands.table.iter().zip(&buffers.all) {
                segment.address.store(buffer.address, Ordering::Relaxed);
                segment
                    .length
                    .store(buffer.region_length as u64, Ordering::Relaxed);
                segment.offset.store(buffer.region as u64, Ordering::Relaxed);
                segment
                    .memory
                    .store(u64::from(buffer.writable()), Ordering::Relaxed);
            }
            commands
                .segments
                .store(buffers.all.len() as u64, Ordering::Relaxed);
            if memory::send_memories(
                self.socket.as_raw_fd(),
                [buffers.read_only.fd(), buffers.writable.fd()],
            )
            .is_err()
            {
                return self.fail(protocol("the control channel is closed"));
            }
            self.layout += 1;
            self.commands().layout.store(self.layout, Ordering::Release);
            self.ring();
            self.child.thaw()?;
            let answer = self.await_answer(|answers| &answers.layout, self.layout, HOUSEKEEPING);
            if let Err(fault) = answer {
                return self.fail(fault);
            }
            self.freeze()?;
            match self.answers().layout_error.load(Ordering::Relaxed) {
                0 => break,
                error if error == libc::EEXIST as u64 && attempt < 5 => {}
                error if error == libc::ENOMEM as u64 => {
                    return Err(WorkerError::Layout(
                        "the worker has no room for these buffers".to_owned(),
                    ));
                }
                _ => return self.fail(protocol("buffers could not be mapped")),
            }
        }
        self.axes.clone_from(&layout.axes);
        self.buffers = Some(buffers);
        (0..layout.slots).try_for_each(|slot| self.set_scalars(slot, &layout.scalars))
    }

    /// The judge's writable view of a buffer (any access). Empty if there is no such buffer.
    pub fn input_mut(&mut self, slot: usize, placement: usize) -> &mut [u8] {
        self.buffers
            .as_mut()
            .map_or(&mut [], |buffers| buffers.bytes_mut(slot, placement))
    }

    /// A buffer's bytes; nobody changes them, the worker is frozen. Empty if there is no such buffer.
    pub fn output(&self, slot: usize, placement: usize) -> &[u8] {
        self.buffers
            .as_ref()
            .map_or(&[], |buffers| buffers.bytes(slot, placement))
    }

    /// Replaces the scalars of one slot.
    pub fn set_scalars(&mut self, slot: usize, scalars: &[Scalar]) -> Result<(), WorkerError> {
        let Some(buffers) = self.buffers.as_ref().filter(|buffers| slot < buffers.slots) else {
            return Err(WorkerError::Layout(format!("there is no slot {slot}")));
        };
        let pointers = (0..buffers.placements)
            .filter_map(|placement| buffers.get(slot, placement))
            .map(|buffer| buffer.address + buffer.start as u64);
        let integers = scalars.iter().filter_map(|scalar| match scalar {
            Scalar::Int(value) => Some(*value),
            Scalar::F32(_) | Scalar::F64(_) => None,
        });
        let integers: Vec<u64> = pointers
            .chain(integers)
            .chain(self.axes.iter().map(|axis| axis.cast_unsigned()))
            .collect();
        let floats: Vec<u64> = scalars
            .iter()
            .filter_map(|scalar| match scalar {
                Scalar::Int(_) => None,
                Scalar::F32(value) => Some(u64::from(value.to_bits())),
                Scalar::F64(value) => Some(value.to_bits()),
            })
            .collect();
        if integers.len() > page::MAX_INTEGERS || floats.len() > page::MAX_FLOATS {
            return Err(WorkerError::Layout("too many scalars".to_owned()));
        }
        let arguments = &self.commands().arguments[slot];
        let fill = |words: &[AtomicU64], values: &[u64]| {
            for (index, word) in words.iter().enumerate() {
                word.store(values.get(index).copied().unwrap_or(0), Ordering::Relaxed);
            }
        };
        fill(&arguments.integers, &integers);
        fill(&arguments.floats, &floats);
        Ok(())
    }

    /// The level of isolation that the worker really has.
    pub fn level(&self) -> Level {
        self.child.level()
    }

    /// How both sides wait; may differ from the specification on a machine with one CPU.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// CPU time of the worker so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.child.cpu_time()
    }

    /// Bytes of resident memory that are the worker's own: buffers and files do not count.
    pub fn own_memory(&self) -> Option<u64> {
        self.child.own_memory()
    }
}

pub(super) fn protocol(what: &str) -> Fault {
    FaultKind::Protocol {
        what: what.to_owned(),
    }
    .into()
}
