//! What a worker is like, what a call may take, and what it says.

use std::path::PathBuf;
use std::time::Duration;

use ksmith_box::Level;

use super::Probe;

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
    /// How much the worker gives way to others (0 to 19).
    pub nice: i32,
    /// Threads of the helper's own that take the CPU in bursts from the candidate's, so that its threads start late and
    /// meet in other orders; only where `threads` is above 1.
    pub rivals: u32,
    /// Memory the worker may use beside its buffers.
    pub memory_bytes: u64,
    /// How to wait; on a machine with one CPU always `Hybrid`.
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
            nice: 0,
            rivals: 0,
            memory_bytes: 1 << 30,
            wait: Wait::Spin,
            start_limit: Duration::from_secs(5),
            least: Level::Kernel,
            unsandboxed: false,
        }
    }
}

/// What a call may take and what to read at once.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// Time limit; afterwards the worker is killed. Default: 5 s.
    pub deadline: Duration,
    /// Bytes to read the moment the clock stops, before the worker is frozen; secret positions.
    pub early: Vec<Probe>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            early: Vec::new(),
        }
    }
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
