//! A worker on the device and the cases that it is shown.
//!
//! The judge owns every buffer: it writes inputs and poison, and reads or compares outputs, in its own context, while the
//! worker's process waits. Each buffer touches unmapped memory at one end; the rest of its memory holds poison, which is
//! looked at after every call.

mod laid;
mod lane;
mod locate;

use std::sync::Arc;
use std::time::Duration;

use ksmith_box::Level;
use ksmith_task::candidate::CudaPlan;
use ksmith_task::{Bound, Candidate, chain};
use ksmith_worker::cpu::Call;
use ksmith_worker::cuda::{Cache, CudaError, CudaFault, KernelFacts, Timing, Worker};
use serde_json::json;

use self::laid::{Laid, SLOTS};
use super::runner::{Answer, RunnerError, Setup, Timed};
use crate::cases::{Case, POISONS, gaps_untouched, gather};
use crate::device::{Code, Device, Resident};
use crate::reference::Checkers;

/// A running worker.
pub(crate) struct Remote {
    /// Taken only when dropped.
    worker: Option<Worker>,
    slots: Vec<Option<Laid>>,
    facts: Vec<KernelFacts>,
    kernels: Vec<String>,
    plan: CudaPlan,
    code: Code,
    current: usize,
    clock: u64,
    poison: u8,
    device: Arc<Device>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("kernels", &self.kernels)
            .finish_non_exhaustive()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.device.retire(worker);
        }
    }
}

impl Remote {
    pub(in crate::gates) fn start(
        device: Arc<Device>,
        candidate: &Candidate,
        code: &Code,
    ) -> Result<Self, RunnerError> {
        let Some(plan) = candidate.cuda() else {
            return Err(RunnerError::Ours(
                "this candidate holds no device code".to_owned(),
            ));
        };
        Self::load(device, plan, code)
    }

    fn load(device: Arc<Device>, plan: &CudaPlan, code: &Code) -> Result<Self, RunnerError> {
        // A context that cannot be made is never the candidate's fault: nothing of it is there yet.
        let mut worker = device
            .worker()
            .map_err(|error| RunnerError::Ours(chain(&error)))?;
        let kernels = plan.kernels();
        let facts = worker.load(&code.cubin, &kernels)?;
        Ok(Self {
            worker: Some(worker),
            slots: (0..SLOTS).map(|_| None).collect(),
            facts,
            kernels,
            plan: plan.clone(),
            code: code.clone(),
            current: 0,
            clock: 0,
            poison: POISONS[0],
            device,
        })
    }

    fn worker(&mut self) -> Result<&mut Worker, RunnerError> {
        self.worker
            .as_mut()
            .ok_or_else(|| RunnerError::Ours("the worker was retired".to_owned()))
    }

    pub(in crate::gates) fn level(&self) -> Level {
        self.worker.as_ref().map_or(Level::None, Worker::level)
    }

    pub(in crate::gates) fn last_poison(&self) -> u8 {
        self.poison
    }

    pub(in crate::gates) fn call(&mut self, case: &Case, setup: Setup) -> Result<Answer, RunnerError> {
        self.lay_out(case, setup.edge)?;
        self.reveal(case)?;
        self.fill(setup.poison)?;
        let answered = match &case.resident {
            Some(resident) => self.judged(case, resident, setup),
            None => self.answer(&case.spec.bound, setup, Cache::AsIs),
        };
        match answered {
            Err(RunnerError::Device(CudaError::Fault(fault @ CudaFault::Device { .. }))) => {
                Err(self.located(case, setup, fault))
            }
            other => other.map(|(answer, _)| answer),
        }
    }

    /// Runs the current slot and compares the outputs where they lie.
    fn judged(
        &mut self,
        case: &Case,
        resident: &Resident,
        setup: Setup,
    ) -> Result<(Answer, Timing), RunnerError> {
        let bound = &case.spec.bound;
        let timing = self.run(Cache::AsIs, setup.deadline)?;
        self.look_at_slack()?;
        let laid = self.laid()?;
        let judged = ours(resident.judge(&self.device, bound, |index| laid.output(index)))?;
        let outputs = if setup.outputs {
            self.read(bound)?
        } else {
            Vec::new()
        };
        let answer = Answer {
            outputs,
            judged: Some(judged),
            gap: None,
            late: None,
            call: call(timing),
        };
        Ok((answer, timing))
    }

    /// Writes a case's inputs into the current slot.
    fn reveal(&mut self, case: &Case) -> Result<(), RunnerError> {
        let Some(resident) = &case.resident else {
            for (index, storage) in case.storage.iter().enumerate() {
                self.rewrite(index, storage)?;
            }
            return Ok(());
        };
        let laid = self.laid()?;
        for index in 0..laid.inputs {
            if let (Some(to), Some(from)) = (laid.input(index), resident.input(index)) {
                ours(self.device.owner.copy(to, from))?;
            }
        }
        Ok(())
    }

    pub(in crate::gates) fn again(
        &mut self,
        bound: &Bound,
        input: usize,
        storage: &[u8],
        poison: Option<u8>,
        setup: Setup,
    ) -> Result<Answer, RunnerError> {
        self.rewrite(input, storage)?;
        if let Some(poison) = poison {
            self.fill(poison)?;
        }
        self.answer(bound, setup, Cache::AsIs).map(|(answer, _)| answer)
    }

    pub(in crate::gates) fn rewrite(&mut self, input: usize, storage: &[u8]) -> Result<(), RunnerError> {
        if let Some(buffer) = self.laid()?.input(input) {
            ours(self.device.owner.write(buffer, storage))?;
        }
        Ok(())
    }

    /// Times one case from cold caches and verifies the whole answer.
    pub(in crate::gates) fn timed(
        &mut self,
        case: &Case,
        setup: Setup,
        checkers: &Checkers,
    ) -> Result<Result<Timed, &'static str>, RunnerError> {
        let bound = &case.spec.bound;
        self.lay_out(case, setup.edge)?;
        self.reveal(case)?;
        self.fill(setup.poison)?;
        let Some(resident) = &case.resident else {
            let (answer, timing) = self.answer(bound, setup, Cache::Cold)?;
            if answer.gap.is_some() {
                return Ok(Err("gap-write"));
            }
            let judgement = crate::gates::judgement::judge(case, &answer.outputs, checkers)
                .map_err(|error| RunnerError::Ours(chain(&error)))?;
            if let Some((_, outcome)) = &judgement.failed {
                return Ok(Err(outcome.cause.map_or("wrong-value", |cause| cause.code())));
            }
            return Ok(Ok(time(timing)));
        };
        let timing = self.run(Cache::Cold, setup.deadline)?;
        let laid = self.laid()?;
        for (index, tensor) in bound.outputs().enumerate() {
            let Some(buffer) = laid.output(index) else {
                return Ok(Err("unwritten"));
            };
            if let Some(cause) = ours(resident.check(&self.device, index, tensor, buffer))? {
                return Ok(Err(cause));
            }
        }
        self.look_at_slack()?;
        Ok(Ok(time(timing)))
    }

    fn run(&mut self, cache: Cache, limit: Duration) -> Result<Timing, RunnerError> {
        let (device, slot) = (Arc::clone(&self.device), self.current);
        Ok(self.worker()?.call(&device.owner, slot, cache, limit)?)
    }

    fn laid(&self) -> Result<&Laid, RunnerError> {
        match self.slots.get(self.current) {
            Some(Some(laid)) => Ok(laid),
            Some(None) | None => Err(RunnerError::Ours(
                "a call before anything was laid out".to_owned(),
            )),
        }
    }

    /// Poisons outputs and workspaces with all the memory around them.
    fn fill(&mut self, poison: u8) -> Result<(), RunnerError> {
        self.poison = poison;
        let laid = self.laid()?;
        for place in laid.poisoned() {
            ours(self.device.owner.poison(&laid.buffers[place].1, poison))?;
        }
        Ok(())
    }

    fn answer(&mut self, bound: &Bound, setup: Setup, cache: Cache) -> Result<(Answer, Timing), RunnerError> {
        let timing = self.run(cache, setup.deadline)?;
        self.look_at_slack()?;
        let laid = self.laid()?;
        let mut outputs = Vec::new();
        let mut gap = None;
        for (index, tensor) in bound.outputs().enumerate() {
            let Some(buffer) = laid.output(index) else {
                continue;
            };
            let mut storage = vec![0; tensor.extent_bytes];
            ours(self.device.owner.read(buffer, &mut storage))?;
            // An in-place output's gaps hold the input's poison, whatever the outputs are poisoned with.
            let poison = if tensor.inplace.is_some() {
                POISONS[0]
            } else {
                setup.poison
            };
            if gap.is_none() && !gaps_untouched(tensor, &storage, poison) {
                gap = Some(tensor.name.clone());
            }
            outputs.push(gather(tensor, &storage));
        }
        let answer = Answer {
            outputs,
            judged: None,
            gap,
            late: None,
            call: call(timing),
        };
        Ok((answer, timing))
    }

    fn read(&self, bound: &Bound) -> Result<Vec<Vec<u8>>, RunnerError> {
        let laid = self.laid()?;
        let mut outputs = Vec::new();
        for (index, tensor) in bound.outputs().enumerate() {
            if let Some(buffer) = laid.output(index) {
                let mut storage = vec![0; tensor.extent_bytes];
                ours(self.device.owner.read(buffer, &mut storage))?;
                outputs.push(gather(tensor, &storage));
            }
        }
        Ok(outputs)
    }

    /// Whether the poison around every writable buffer is still there.
    fn look_at_slack(&self) -> Result<(), RunnerError> {
        let laid = self.laid()?;
        let shared = (0..laid.inputs).filter(|input| laid.place[laid.inputs..].contains(&laid.place[*input]));
        let shared: Vec<usize> = shared.map(|input| laid.place[input]).collect();
        for (place, filler) in laid
            .poisoned()
            .map(|place| (place, self.poison))
            .chain(shared.into_iter().map(|place| (place, POISONS[0])))
        {
            let (name, buffer) = &laid.buffers[place];
            let intact = self
                .device
                .checks
                .slack_intact(&self.device.owner, buffer, filler);
            if let Some(side) = ours(intact)?.iter().position(|intact| !intact) {
                return Err(RunnerError::Found {
                    cause: "canary",
                    evidence: json!({ "buffer": name, "side": SIDES[side] }),
                });
            }
        }
        Ok(())
    }
}

/// Words for the two sides of a buffer, in the order of its slack.
const SIDES: [&str; 2] = ["before", "after"];

/// A failure in the judge's own context says nothing about the candidate.
fn ours<T>(result: Result<T, CudaError>) -> Result<T, RunnerError> {
    result.map_err(|error| RunnerError::Ours(chain(&error)))
}

fn call(timing: Timing) -> Call {
    Call {
        ns: timing.event_ns,
        judge_preempted: false,
        worker_preempted: false,
        early: Vec::new(),
    }
}

fn time(timing: Timing) -> Timed {
    Timed {
        ns: timing.event_ns,
        judge_preempted: false,
        worker_preempted: false,
    }
}
