//! What can go wrong in a worker: the candidate's fault, or ours.

use std::fmt;

use ksmith_box::BoxError;
use serde::{Deserialize, Serialize};

/// Where, relative to a buffer, a fault happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Below its first byte.
    Before,
    /// Within it (of an input: a write to read-only memory).
    Inside,
    /// Behind its last byte.
    After,
}

/// What kind of fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A signal killed the worker.
    Crash {
        /// Its number.
        signal: i32,
    },
    /// A write to a read-only input.
    InputWrite,
    /// Bytes around a buffer were changed.
    Canary,
    /// No answer in time.
    Timeout,
    /// The box ran out of memory.
    OutOfMemory,
    /// A system call that the profile forbids.
    ForbiddenCall {
        /// Its name.
        name: String,
    },
    /// The worker ended by itself.
    Exited {
        /// With this code.
        code: i32,
    },
    /// Rounding, flush-to-zero or exception masks were left changed.
    ControlBits,
    /// The library could not be loaded, or has no such entry (worker's words, escaped and capped).
    Load {
        /// The loader's message.
        message: String,
    },
    /// The worker broke the protocol.
    Protocol {
        /// What was wrong.
        what: String,
    },
}

/// A fault of the candidate: data for a verdict, never an error of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The buffer concerned, if known.
    pub buffer: Option<String>,
    /// On which side of it.
    pub side: Option<Side>,
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self {
            kind,
            buffer: None,
            side: None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::Crash { signal } => write!(f, "crashed with signal {signal}")?,
            FaultKind::InputWrite => f.write_str("wrote to a read-only input")?,
            FaultKind::Canary => f.write_str("changed bytes outside its buffers")?,
            FaultKind::Timeout => f.write_str("gave no answer in time")?,
            FaultKind::OutOfMemory => f.write_str("ran out of memory")?,
            FaultKind::ForbiddenCall { name } => write!(f, "made the forbidden system call `{name}`")?,
            FaultKind::Exited { code } => write!(f, "ended by itself with code {code}")?,
            FaultKind::ControlBits => f.write_str("left the floating-point control bits changed")?,
            FaultKind::Load { message } => write!(f, "could not be loaded: {message}")?,
            FaultKind::Protocol { what } => write!(f, "broke the protocol: {what}")?,
        }
        match (&self.buffer, self.side) {
            (Some(buffer), Some(Side::Before)) => write!(f, " (before `{buffer}`)"),
            (Some(buffer), Some(Side::After)) => write!(f, " (behind `{buffer}`)"),
            (Some(buffer), _) => write!(f, " (`{buffer}`)"),
            (None, _) => Ok(()),
        }
    }
}

/// Why a worker did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The candidate's fault; the worker is dead afterwards.
    #[error("the candidate {0}")]
    Fault(Fault),
    /// The box could not be made or watched.
    #[error("the worker's box")]
    Box(#[from] BoxError),
    /// The layout cannot be made: too many arguments, a bad alignment, an index out of range.
    #[error("{0}")]
    Layout(String),
    /// The worker is dead: an earlier call faulted.
    #[error("the worker is dead: an earlier call ended with a fault")]
    Dead,
    /// An operating system call of ours failed.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl From<Fault> for WorkerError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
