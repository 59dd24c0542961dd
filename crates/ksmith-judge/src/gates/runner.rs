//! One worker and the cases that it is shown, whatever it runs on.
//!
//! Each call is a challenge: inputs are copied in, outputs are poisoned, the clock runs, and only when the answer is
//! there is anything compared. A worker is never shown a case twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ksmith_box::Level;
use ksmith_task::{Bound, Tensor, chain};
use ksmith_worker::cpu::{Call, Edge, Wait, WorkerError};
use ksmith_worker::cuda::{CudaError, PlanError};

use super::context::{Built, Code};
use super::judgement::{Judgement, judge};
use super::native::Native;
use super::remote::Remote;
use crate::cases::{Case, POISONS};
use crate::device::Device;
use crate::reference::{Checkers, ReferenceError};

/// How workers are confined and pinned.
#[derive(Debug, Clone)]
pub(crate) struct WorkerOptions {
    pub(crate) threads: usize,
    /// CPUs of the worker; empty: all but the judge's.
    pub(crate) cpus: Vec<usize>,
    pub(crate) nice: i32,
    pub(crate) rivals: u32,
    pub(crate) wait: Wait,
    pub(crate) least: Level,
    pub(crate) unsandboxed: bool,
    /// The device on which candidates run; none: this CPU.
    pub(crate) device: Option<Arc<Device>>,
}

/// What a call is made with, beside the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) edge: Edge,
    pub(crate) poison: u8,
    pub(crate) deadline: Duration,
    /// Whether the outputs are read, where they were judged on the device already.
    pub(crate) outputs: bool,
}

impl Setup {
    pub(crate) fn new(bound: &Bound) -> Self {
        Self {
            edge: Edge::End,
            poison: POISONS[0],
            deadline: patience(bound),
            outputs: true,
        }
    }

    /// Outputs that were judged on the device stay there.
    pub(crate) fn judged_only(self) -> Self {
        Self {
            outputs: false,
            ..self
        }
    }

    pub(crate) fn edge(self, edge: Edge) -> Self {
        Self { edge, ..self }
    }

    pub(crate) fn poison(self, poison: u8) -> Self {
        Self { poison, ..self }
    }

    pub(crate) fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }
}

/// A deadline for calls whose speed is not judged: generous for anything that is not stuck.
pub(crate) fn patience(bound: &Bound) -> Duration {
    let work = bound.storage_bytes() as f64 * 50.0 + bound.cost_flops * 5.0;
    Duration::from_secs(1) + Duration::from_nanos(work.min(60e9) as u64)
}

/// What a call left.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Row-major element bytes of each output.
    pub(crate) outputs: Vec<Vec<u8>>,
    /// How the outputs compare, where the case lies on a device: they were judged there.
    pub(crate) judged: Option<Judgement>,
    /// Output whose gaps were written to.
    pub(crate) gap: Option<String>,
    /// Output that still changed after the answer.
    pub(crate) late: Option<String>,
    pub(crate) call: Call,
}

impl Answer {
    /// How the outputs compare with the case's expectations.
    pub(crate) fn judgement(&self, case: &Case, checkers: &Checkers) -> Result<Judgement, ReferenceError> {
        match &self.judged {
            Some(judged) => Ok(judged.clone()),
            None => judge(case, &self.outputs, checkers),
        }
    }
}

/// Why a worker gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunnerError {
    /// A worker on the CPU: its fault or ours.
    #[error(transparent)]
    Native(#[from] WorkerError),
    /// A worker on a device: its fault or ours.
    #[error(transparent)]
    Device(#[from] CudaError),
    /// The launch plan cannot be right for this shape.
    #[error("the launch plan: {0}")]
    Plan(#[from] PlanError),
    /// A fault that the judge found in the buffers.
    #[error("{cause}")]
    Found {
        /// Second part of the code.
        cause: &'static str,
        /// What was seen.
        evidence: serde_json::Value,
    },
    /// Nobody's but ours.
    #[error("{0}")]
    Ours(String),
}

/// A timed and verified call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) ns: u64,
    pub(crate) judge_preempted: bool,
    pub(crate) worker_preempted: bool,
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Runner {
    worker: Place,
    seen: HashSet<(String, u64)>,
}

#[derive(Debug)]
enum Place {
    Native(Box<Native>),
    Remote(Box<Remote>),
}

impl Runner {
    /// Starts a worker and loads what was built into it.
    pub(crate) fn start(built: &Built, options: &WorkerOptions) -> Result<Self, RunnerError> {
        let worker = match (&built.code, &options.device) {
            (Code::Native { library, entry, .. }, _) => {
                Place::Native(Box::new(Native::start(&library.path, entry, options)?))
            }
            (Code::Device(code), Some(device)) => Place::Remote(Box::new(Remote::start(
                Arc::clone(device),
                &built.candidate,
                code,
            )?)),
            (Code::Device(_), None) => {
                return Err(RunnerError::Ours("this judge has no device".to_owned()));
            }
        };
        Ok(Self {
            worker,
            seen: HashSet::new(),
        })
    }

    pub(crate) fn level(&self) -> Level {
        match &self.worker {
            Place::Native(worker) => worker.level(),
            Place::Remote(worker) => worker.level(),
        }
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        match &self.worker {
            Place::Native(worker) => worker.cpu_time(),
            // Device code uses no CPU; the worker's own is not the candidate's.
            Place::Remote(_) => None,
        }
    }

    /// Bytes of resident memory that are the worker's own; a device's memory is not looked at.
    pub(crate) fn own_memory(&self) -> Option<u64> {
        match &self.worker {
            Place::Native(worker) => worker.own_memory(),
            Place::Remote(_) => None,
        }
    }

    /// Reveals a case and reads the answer.
    pub(crate) fn call(&mut self, case: &Case, setup: Setup) -> Result<Answer, RunnerError> {
        self.note(case);
        Ok(match &mut self.worker {
            Place::Native(worker) => worker.call(case, setup)?,
            Place::Remote(worker) => worker.call(case, setup)?,
        })
    }

    fn note(&mut self, case: &Case) {
        let fresh = self.seen.insert((case.spec.stream.clone(), case.spec.number));
        debug_assert!(fresh, "a worker is shown each case once");
    }

    /// Reveals a case, times the answer and verifies the whole of it; the inner error is the cause of a wrong one.
    pub(crate) fn timed(
        &mut self,
        case: &Case,
        setup: Setup,
        checkers: &Checkers,
    ) -> Result<Result<Timed, &'static str>, RunnerError> {
        self.note(case);
        let answer = match &mut self.worker {
            Place::Native(worker) => worker.call(case, setup)?,
            Place::Remote(worker) => return worker.timed(case, setup, checkers),
        };
        if answer.late.is_some() {
            return Ok(Err("late-write"));
        }
        if answer.gap.is_some() {
            return Ok(Err("gap-write"));
        }
        let judgement =
            judge(case, &answer.outputs, checkers).map_err(|error| RunnerError::Ours(chain(&error)))?;
        if let Some((_, outcome)) = &judgement.failed {
            return Ok(Err(outcome.cause.map_or("wrong-value", |cause| cause.code())));
        }
        Ok(Ok(Timed {
            ns: answer.call.ns,
            judge_preempted: answer.call.judge_preempted,
            worker_preempted: answer.call.worker_preempted,
        }))
    }

    /// Changes one input of the case shown last, at the same addresses, and calls again. With `poison` the outputs are
    /// poisoned anew; without, they hold the earlier answer.
    pub(crate) fn again(
        &mut self,
        bound: &Bound,
        input: usize,
        storage: &[u8],
        poison: Option<u8>,
        setup: Setup,
    ) -> Result<Answer, RunnerError> {
        Ok(match &mut self.worker {
            Place::Native(worker) => worker.again(bound, input, storage, poison, setup)?,
            Place::Remote(worker) => worker.again(bound, input, storage, poison, setup)?,
        })
    }

    /// Writes one input's storage without a call.
    pub(crate) fn rewrite(&mut self, bound: &Bound, input: usize, storage: &[u8]) -> Result<(), RunnerError> {
        match &mut self.worker {
            Place::Native(worker) => worker.rewrite(bound, input, storage),
            Place::Remote(worker) => worker.rewrite(input, storage)?,
        }
        Ok(())
    }

    /// The poison that outputs were last filled with.
    pub(crate) fn last_poison(&self) -> u8 {
        match &self.worker {
            Place::Native(worker) => worker.last_poison(),
            Place::Remote(worker) => worker.last_poison(),
        }
    }

    /// The worker on the device, if it is one.
    pub(crate) fn remote(&mut self) -> Option<&mut Remote> {
        match &mut self.worker {
            Place::Native(_) => None,
            Place::Remote(worker) => Some(worker),
        }
    }

    /// Reveals several cases of one shape together and times the whole answer; on the CPU only.
    pub(crate) fn batch(&mut self, cases: &[&Case], setup: Setup) -> Result<Call, RunnerError> {
        match &mut self.worker {
            Place::Native(worker) => Ok(worker.batch(cases, setup)?),
            Place::Remote(_) => Err(RunnerError::Ours("batches run on the CPU only".to_owned())),
        }
    }

    /// The elements of an output of one slot after a batch.
    pub(crate) fn slot_outputs(&self, bound: &Bound, slot: usize) -> Vec<Vec<u8>> {
        match &self.worker {
            Place::Native(worker) => worker.slot_outputs(bound, slot),
            Place::Remote(_) => Vec::new(),
        }
    }
}

/// Storage offset, in elements, of a row-major element index.
pub(crate) fn element_offset(tensor: &Tensor, mut element: usize) -> usize {
    let mut offset = 0;
    for (size, stride) in tensor.shape.iter().zip(&tensor.strides).rev() {
        offset += element % size.max(&1) * stride;
        element /= size.max(&1);
    }
    offset
}
