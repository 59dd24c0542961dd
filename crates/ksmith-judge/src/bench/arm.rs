//! What the scheduler measures, and the border to whoever starts workers.
//!
//! The scheduler knows no worker, no case and no comparison: it asks a [`Host`] for arms and times nothing itself.
//! That lets real workers, synthetic models and recorded timings drive the same rule.

use std::time::Duration;

use ksmith_machine::DeviceSample;
use serde::{Deserialize, Serialize};

/// The part that one worker of a process set plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The candidate under judgement.
    Candidate,
    /// The performance reference: the best accepted candidate, at first the baseline.
    Champion,
    /// A second worker with the champion's bytes: the A/A control.
    Copy,
    /// The task's baseline, where it is not the champion.
    Baseline,
    /// The baseline's source under the best flag set, where it is neither champion nor baseline.
    FlagControl,
}

/// Decision first, then confirmation with new processes, secrets and order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Looks at fixed counts; only the last may accept.
    Decision,
    /// One look.
    Confirmation,
}

/// One case of the caller's pool. Every worker process sees each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseId {
    /// Index into [`super::Plan::workloads`].
    pub workload: u32,
    /// Index into [`super::Workload::distributions`].
    pub distribution: u32,
    /// Index below [`super::Distribution::cases`].
    pub index: u32,
}

/// One challenged call: reveal, clock, answer, clock, look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedCall {
    /// Wall time by the judge's clock, in nanoseconds.
    pub ns: u64,
    /// The judge waited for a CPU during the call.
    pub judge_preempted: bool,
    /// The worker waited for a CPU during the call.
    pub worker_preempted: bool,
}

impl TimedCall {
    /// Reports whether either side was preempted: such a call says nothing about the kernel.
    pub fn preempted(self) -> bool {
        self.judge_preempted || self.worker_preempted
    }
}

/// Why a call or a start gave no time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The arm's own fault: wrong output, crash, deadline, forbidden call. Data, when the arm is the candidate.
    #[error("{code}")]
    Arm {
        /// Stable `gate/cause` string.
        code: String,
        /// What was seen, already free of secrets.
        evidence: serde_json::Value,
    },
    /// The judge's side failed: nothing can be said about the arm.
    #[error("{0}")]
    Judge(String),
}

/// One worker process, started and parked.
pub trait Arm {
    /// Reveals `case`, times the answer, freezes the worker and verifies the whole output after the clock stopped.
    ///
    /// A wrong output is a [`Fault::Arm`]: a time without a verified output does not exist.
    fn call(&mut self, case: CaseId) -> Result<TimedCall, Fault>;

    /// Shows the worker contents of unusual kinds, untimed, and verifies them: called when a set's rounds are over, so that
    /// the worker is as old as it gets.
    fn late(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Lets the worker run: called before the first call of a lane.
    fn wake(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Freezes the worker: called after the last call of a lane.
    fn park(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// CPU time of the worker's whole process group so far, where the system tells.
    fn cpu_time(&mut self) -> Option<Duration> {
        None
    }
}

/// Starts workers, keeps the time, knows the machine.
pub trait Host {
    /// The workers that this host starts.
    type Arm: Arm;

    /// Prepares a stage: new secrets and pools for a confirmation; everything else of ours is frozen from here on.
    fn begin(&mut self, stage: Stage) -> Result<(), Fault>;

    /// Starts one worker, parked. A set's workers are started one after the other in random order.
    fn start(&mut self, role: Role, set: u32) -> Result<Self::Arm, Fault>;

    /// Waits for a quiet moment, at most `limit`, and says what the load was.
    fn quiet(&mut self, limit: Duration) -> Load;

    /// Monotonic time since any fixed moment.
    fn now(&mut self) -> Duration;

    /// Gets ready to start this many workers: what can be begun beside each other is.
    fn prepare(&mut self, arms: usize) {
        let _ = arms;
    }

    /// What the device that is timed does at this moment, where there is one that tells.
    fn sample(&mut self) -> Option<DeviceSample> {
        None
    }

    /// Ends a stage: what [`Host::begin`] froze may run again.
    fn end(&mut self, stage: Stage) {
        let _ = stage;
    }
}

/// What else ran on the machine when a stage began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// CPUs kept busy by others, in CPUs; `None` where the system does not tell.
    pub other_cpus: Option<f64>,
    /// How long the host waited for it to fall, in seconds.
    pub waited_s: f64,
    /// Whether the host calls the moment quiet.
    pub quiet: bool,
}
