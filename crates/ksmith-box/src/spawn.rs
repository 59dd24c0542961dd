//! Starting, watching, stopping.

use std::time::{Duration, Instant};

use crate::{BoxError, BoxSpec, Ended, Finished, Level};

/// A running boxed process; everything in its box is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    level: Level,
}

/// Runs to completion, with the standard output and error kept up to the cap.
pub fn run(_spec: &BoxSpec) -> Result<Finished, BoxError> {
    Err(BoxError::NotIntercepted)
}

/// Starts and returns at once; standard output and error go nowhere.
pub fn spawn(_spec: &BoxSpec) -> Result<Child, BoxError> {
    Err(BoxError::NotIntercepted)
}

impl Child {
    /// The process id of the program or role itself, in our own view.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The level of isolation that it really has.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Stops every thread; returns once all have stopped.
    pub fn freeze(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Lets a stopped process go on.
    pub fn thaw(&mut self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Kills everything in the box and waits for its end.
    pub fn kill(&mut self) -> Ended {
        Ended::Killed
    }

    /// How it ended, if it has; never blocks.
    pub fn try_wait(&mut self) -> Option<Ended> {
        None
    }

    /// Waits until it ends or the deadline passes; afterwards it is killed and `TimedOut`.
    pub fn wait(&mut self, _deadline: Instant) -> Ended {
        Ended::TimedOut
    }

    /// Nanoseconds that its threads were runnable without running, so far (`schedstat`).
    pub fn run_delay_ns(&self) -> Option<u64> {
        None
    }

    /// CPU time used by the process so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        None
    }
}
