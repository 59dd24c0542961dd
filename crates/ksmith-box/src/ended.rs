//! How a boxed process ended, and what it left.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a boxed process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It exited by itself with this code.
    Exited(i32),
    /// This signal killed it.
    Signal(i32),
    /// Its wall or CPU time was over; everything in the box was killed.
    TimedOut,
    /// The kernel killed it because it used more memory than the box has.
    OutOfMemory,
    /// It made a system call that its profile forbids (the name, or `unknown`); everything in the box was killed.
    ForbiddenCall(String),
    /// It was killed by us, on request.
    Killed,
}

impl Ended {
    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        *self == Self::Exited(0)
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signal(number) => write!(f, "killed by signal {number}"),
            Self::TimedOut => write!(f, "out of time"),
            Self::OutOfMemory => write!(f, "out of memory"),
            Self::ForbiddenCall(name) => write!(f, "forbidden system call `{name}`"),
            Self::Killed => write!(f, "killed on request"),
        }
    }
}

/// What a process that ran to completion left.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub ended: Ended,
    /// The first bytes of its standard output, up to the cap.
    pub stdout: Vec<u8>,
    /// The first bytes of its standard error, up to the cap.
    pub stderr: Vec<u8>,
    /// Whether either output was longer than the cap.
    pub truncated: bool,
    /// Whether it was killed because its output was longer than the box allows.
    pub flooded: bool,
    /// Wall time from the start of the helper to the end of the box.
    pub wall: Duration,
    /// The level of isolation that it really had.
    pub level: crate::Level,
}
