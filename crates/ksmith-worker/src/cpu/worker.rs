//! The judge's half: starts a worker, gives it buffers, times its answers.

use std::path::PathBuf;
use std::time::Duration;

use ksmith_box::Level;

use super::{Layout, Probe, Scalar, WorkerError};

/// How both sides wait for each other; recorded with every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// Both spin, each on CPUs of its own.
    Spin,
    /// Both spin for 50 µs and then sleep: for workers that need every CPU.
    Hybrid,
}

/// A worker, described.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// The library to load.
    pub library: PathBuf,
    /// The symbol to call.
    pub entry: String,
    /// Threads that the candidate may use, with the one that calls it.
    pub threads: usize,
    /// CPUs of the worker; empty: all but the judge's.
    pub cpus: Vec<usize>,
    /// Memory the worker may use beside its buffers.
    pub memory_bytes: u64,
    /// How to wait.
    pub wait: Wait,
    /// Wall limit of loading (constructors run then).
    pub start_limit: Duration,
    /// Least isolation.
    pub least: Level,
    /// Whether the user allowed less than that by name.
    pub unsandboxed: bool,
}

impl WorkerSpec {
    /// One thread, 1 GiB, spinning, 5 s to load, least level `kernel`.
    pub fn new(library: impl Into<PathBuf>, entry: &str) -> Self {
        Self {
            library: library.into(),
            entry: entry.to_owned(),
            threads: 1,
            cpus: Vec::new(),
            memory_bytes: 1 << 30,
            wait: Wait::Spin,
            start_limit: Duration::from_secs(5),
            least: Level::Kernel,
            unsandboxed: false,
        }
    }
}

/// What a call may take and what to read at once.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Time limit; afterwards the worker is killed.
    pub deadline: Duration,
    /// Bytes to read the moment the clock stops, before the worker is frozen; secret positions.
    pub early: Vec<Probe>,
}

/// One answered call (or batch).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Judge's time from the challenge to the answer.
    pub ns: u64,
    /// Whether the judge lost its CPU meanwhile.
    pub judge_preempted: bool,
    /// Whether a thread of the worker lost its CPU meanwhile.
    pub worker_preempted: bool,
    /// The bytes asked for, little-endian, in the order of [`CallOptions::early`].
    pub early: Vec<u64>,
}

/// A running worker. It is frozen whenever no method of it is running, and killed when dropped.
#[derive(Debug)]
pub struct Worker {
    _private: (),
}

impl Worker {
    /// Starts a worker and loads the library. Death while loading is the candidate's fault.
    pub fn start(_spec: &WorkerSpec) -> Result<Self, WorkerError> {
        Err(WorkerError::Dead)
    }

    /// Gives the worker new buffers, at fresh addresses; the old ones are gone. Inputs are zero, outputs too.
    pub fn layout(&mut self, _layout: &Layout) -> Result<(), WorkerError> {
        Err(WorkerError::Dead)
    }

    /// The judge's writable view of a buffer (any access). Empty if there is no such buffer.
    pub fn input_mut(&mut self, _slot: usize, _placement: usize) -> &mut [u8] {
        &mut []
    }

    /// A buffer's bytes; nobody changes them, the worker is frozen. Empty if there is no such buffer.
    pub fn output(&self, _slot: usize, _placement: usize) -> &[u8] {
        &[]
    }

    /// Replaces the scalars of one slot.
    pub fn set_scalars(&mut self, _slot: usize, _scalars: &[Scalar]) -> Result<(), WorkerError> {
        Err(WorkerError::Dead)
    }

    /// One challenge on one slot: start the clock, wait, stop the clock, read `early`, freeze, check canaries.
    pub fn call(&mut self, _slot: usize, _options: &CallOptions) -> Result<Call, WorkerError> {
        Err(WorkerError::Dead)
    }

    /// Slots `0..k` revealed together and timed as one, for the slope test.
    pub fn call_batch(&mut self, _k: usize, _options: &CallOptions) -> Result<Call, WorkerError> {
        Err(WorkerError::Dead)
    }

    /// The level of isolation that the worker really has.
    pub fn level(&self) -> Level {
        Level::None
    }

    /// CPU time of the worker so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        None
    }
}
