//! Watches what was locked: a later edit stops the run.

use std::path::Path;

use ksmith_task::{Digest, Lock, Task};

use crate::RunError;

/// The lock of a run and the task that it holds.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    task: Task,
    lock: Lock,
}

impl Guard {
    /// Locks a task.
    pub(crate) fn lock(task: &Task, judge: Digest) -> Result<Self, RunError> {
        Ok(Self {
            lock: Lock::of(task, judge)?,
            task: task.clone(),
        })
    }

    /// Takes up a lock made earlier; says what differs now, the judge included.
    pub(crate) fn resume(task: &Task, lock: Lock, judge: Digest) -> Result<Self, RunError> {
        let changes = lock.differences(&Lock::of(task, judge)?);
        if changes.is_empty() {
            return Ok(Self {
                task: task.clone(),
                lock,
            });
        }
        Err(RunError::Changed(
            changes.iter().map(ToString::to_string).collect(),
        ))
    }

    /// What is locked.
    pub(crate) fn locked(&self) -> &Lock {
        &self.lock
    }

    /// What was edited, added or removed since the lock, in words.
    pub(crate) fn changed(&self) -> Result<Vec<String>, RunError> {
        Ok(self
            .lock
            .compare(&self.task)?
            .iter()
            .map(ToString::to_string)
            .collect())
    }
}

/// Hash of this very program: the judge is part of it.
///
/// # Errors
/// When the program's file cannot be read.
pub fn judge_digest() -> Result<Digest, RunError> {
    let path = std::env::current_exe().map_err(RunError::io("find", Path::new("the program itself")))?;
    Ok(Digest::of(
        &std::fs::read(&path).map_err(RunError::io("read", &path))?,
    ))
}
