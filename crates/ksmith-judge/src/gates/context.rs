//! What the gates of one scoring share: the candidate, its library, the cases, and how a gate ends.

use std::path::PathBuf;
use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_task::{Backend, Candidate, Digest, Instance, chain};
use ksmith_worker::build::{BuildOptions, Library};
use ksmith_worker::cpu::{Fault, FaultKind, Side, WorkerError};
use ksmith_worker::cuda::{CudaError, CudaFault};
use serde_json::{Value, json};

use super::judgement::Judgement;
use super::runner::{Answer, Runner, RunnerError, Setup, WorkerOptions};
use crate::cases::{Case, Plan, Secret, Sight};
use crate::codes::code;
use crate::compare::Cause;
use crate::judge::JudgeError;
use crate::reference::Oracle;

/// A built candidate, champion, baseline or control.
#[derive(Debug, Clone)]
pub(crate) struct Built {
    pub(crate) candidate: Candidate,
    pub(crate) code: Code,
}

/// What the compiler made of a candidate.
#[derive(Debug, Clone)]
pub(crate) enum Code {
    /// A shared library for this CPU.
    Native {
        library: Library,
        entry: String,
        /// The folder in which what was hashed was compiled.
        folder: Arc<tempfile::TempDir>,
    },
    /// A module for the device.
    Device(crate::device::Code),
}

impl Built {
    /// Hash of what runs: two of the same digest are one kernel.
    pub(crate) fn digest(&self) -> Digest {
        match &self.code {
            Code::Native { library, .. } => library.digest,
            Code::Device(code) => code.digest,
        }
    }
}

/// What the gates of one scoring share.
pub(crate) struct Scoring<'j> {
    pub(crate) instance: &'j Instance,
    /// Which tier runs the candidate.
    pub(crate) backend: Backend,
    pub(crate) oracle: &'j mut Oracle,
    pub(crate) worker: &'j WorkerOptions,
    pub(crate) build: &'j BuildOptions,
    pub(crate) scratch: PathBuf,
    pub(crate) candidate: &'j Candidate,
    pub(crate) built: Option<Built>,
    pub(crate) baseline: &'j Built,
    pub(crate) secret: Secret,
    /// Tiny visible cases.
    pub(crate) tiny: Vec<Arc<Case>>,
    /// The visible workloads with their names.
    pub(crate) dev: Vec<(String, Arc<Case>)>,
    /// Hidden cases of this scoring, once drawn.
    pub(crate) hidden: Vec<Arc<Case>>,
    /// Whether only small shapes run.
    pub(crate) small: bool,
    /// Largest error over bound on the hidden cases, and the case it came from.
    pub(crate) ratios: Vec<f64>,
    /// A worker that one gate of a screening leaves for the next: starting one on a device takes longer than a gate.
    pub(crate) warm: Option<Runner>,
    /// Whether workers are kept warm.
    pub(crate) keep_warm: bool,
}

/// How a gate ends, when it could run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Pass(Value),
    Fail(String, Value),
    Skipped(&'static str),
}

/// `Err` means that *we* could not judge.
pub(crate) type GateEnd = Result<End, JudgeError>;

/// The end of a step inside a gate: `Ok(Some(..))` stops the gate with a failure.
pub(crate) type Step<T> = Result<Result<T, End>, JudgeError>;

/// Goes on with the value of a step, or ends the gate.
macro_rules! step {
    ($step:expr) => {
        match $step? {
            Ok(value) => value,
            Err(end) => return Ok(end),
        }
    };
}
pub(crate) use step;

impl<'j> Scoring<'j> {
    pub(crate) fn library(&self) -> Result<&Built, JudgeError> {
        self.built
            .as_ref()
            .ok_or_else(|| JudgeError::Unsupported("the candidate was not compiled".to_owned()))
    }

    /// The plan of this scoring's hidden cases.
    pub(crate) fn plan(&self) -> Plan<'j> {
        Plan::hidden(self.instance, &self.secret).on(self.backend)
    }

    /// Starts a worker for the candidate; dying while loading is its own failure.
    pub(crate) fn start(&mut self, gate: Gate) -> Step<Runner> {
        if let Some(warm) = self.warm.take() {
            return Ok(Ok(warm));
        }
        self.start_with(gate, self.worker)
    }

    /// Starts a worker for the candidate under other options than usual.
    pub(crate) fn start_with(&self, gate: Gate, options: &WorkerOptions) -> Step<Runner> {
        match Runner::start(self.library()?, options) {
            Ok(runner) => Ok(Ok(runner)),
            Err(error) => failed(gate, error),
        }
    }

    /// Gives a worker back that a gate has no more use for.
    pub(crate) fn leave(&mut self, runner: Runner) {
        if self.keep_warm {
            self.warm = Some(runner);
        }
    }

    /// Starts a worker for the baseline; its death is our problem.
    pub(crate) fn start_baseline(&self) -> Result<Runner, JudgeError> {
        Runner::start(self.baseline, self.worker).map_err(|error| JudgeError::Worker(chain(&error)))
    }

    /// Shows a case to a runner and judges the answer.
    pub(crate) fn try_case(
        &self,
        gate: Gate,
        runner: &mut Runner,
        case: &Case,
        setup: Setup,
    ) -> Step<(Answer, Judgement)> {
        match runner.call(case, setup) {
            Ok(answer) => self.judge(gate, case, answer),
            Err(error) => failed(gate, error),
        }
    }

    /// Judges an answer.
    pub(crate) fn judge(&self, gate: Gate, case: &Case, answer: Answer) -> Step<(Answer, Judgement)> {
        if let Some(output) = &answer.late {
            return Ok(Err(End::Fail(
                code(gate, "late-write"),
                json!({ "output": output }),
            )));
        }
        if let Some(output) = &answer.gap {
            return Ok(Err(End::Fail(
                code(gate, "gap-write"),
                json!({ "output": output }),
            )));
        }
        let judgement = answer.judgement(case, &self.oracle.checkers())?;
        match judgement.failed {
            None => Ok(Ok((answer, judgement))),
            Some(_) => Ok(Err(wrong(gate, case, &judgement))),
        }
    }
}

/// A failed comparison as the end of a gate, with as much evidence as the case allows.
pub(crate) fn wrong(gate: Gate, case: &Case, judgement: &Judgement) -> End {
    let Some((output, outcome)) = &judgement.failed else {
        return End::Pass(Value::Null);
    };
    let cause = outcome.cause.unwrap_or(Cause::Value);
    let evidence = match case.spec.sight {
        Sight::Hidden => json!({ "class": cause.code() }),
        Sight::Dev => {
            let bound = &case.spec.bound;
            let shape: Vec<usize> = bound
                .tensor(output)
                .map_or_else(Vec::new, |tensor| tensor.shape.clone());
            let axes: serde_json::Map<String, Value> = bound
                .axes
                .iter()
                .map(|(name, size)| (name.clone(), json!(size)))
                .collect();
            json!({
                "case": case.spec.stream,
                "axes": axes,
                "output": output,
                "failures": outcome.failures,
                "place": outcome.worst.map(|worst| place(&shape, worst.index)),
                "got": outcome.worst.map(|worst| number(worst.got)),
                "want": outcome.worst.map(|worst| number(worst.want)),
                "bound": outcome.worst.map(|worst| number(worst.bound)),
            })
        }
    };
    End::Fail(code(gate, cause.code()), evidence)
}

/// A number in JSON, which has no infinities and no NaN.
pub(crate) fn number(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        json!(value.to_string())
    }
}

fn place(shape: &[usize], mut index: usize) -> Vec<usize> {
    let mut place = vec![0; shape.len()];
    for (slot, size) in place.iter_mut().zip(shape).rev() {
        *slot = index % size.max(&1);
        index /= size.max(&1);
    }
    place
}

/// A worker's fault as the end of a gate, or our own failure.
pub(crate) fn failed<T>(gate: Gate, error: RunnerError) -> Step<T> {
    blamed(gate, error).map(Err)
}

/// Whose fault it is that a worker gave no answer: the candidate's end, or our own failure.
pub(crate) fn blamed(gate: Gate, error: RunnerError) -> Result<End, JudgeError> {
    match error {
        RunnerError::Native(WorkerError::Fault(fault)) => Ok(fault_end(gate, &fault)),
        RunnerError::Device(CudaError::Fault(fault)) => Ok(device_fault_end(gate, &fault)),
        RunnerError::Native(WorkerError::Box(error)) | RunnerError::Device(CudaError::Box(error)) => {
            Err(JudgeError::Box(error))
        }
        RunnerError::Plan(error) => Ok(End::Fail(
            code(gate, "plan"),
            json!({ "place": error.place, "message": error.message }),
        )),
        RunnerError::Found { cause, evidence } => Ok(End::Fail(code(gate, cause), evidence)),
        other => Err(JudgeError::Worker(chain(&other))),
    }
}

/// The cause and evidence of a fault on the device.
fn device_fault_end(gate: Gate, fault: &CudaFault) -> End {
    let (cause, evidence) = match fault {
        CudaFault::Device { call, code, name } => (
            "crash",
            json!({ "error": name, "number": code, "reported_by": call }),
        ),
        CudaFault::Load { message } => ("load", json!({ "message": message })),
        CudaFault::Timeout => ("timeout", json!({})),
        CudaFault::Ended { how } => ("exited", json!({ "how": how })),
        CudaFault::Protocol { what } => ("protocol", json!({ "what": what })),
    };
    End::Fail(code(gate, cause), evidence)
}

/// The cause and evidence of a fault.
pub(crate) fn fault_end(gate: Gate, fault: &Fault) -> End {
    let (cause, mut evidence) = match &fault.kind {
        FaultKind::Crash { signal } => ("crash", json!({ "signal": signal })),
        FaultKind::InputWrite => ("input-write", json!({})),
        FaultKind::Canary => ("canary", json!({})),
        FaultKind::Timeout => ("timeout", json!({})),
        FaultKind::OutOfMemory => ("out-of-memory", json!({})),
        FaultKind::ForbiddenCall { name } => ("forbidden-call", json!({ "call": name })),
        FaultKind::Exited { code } => ("exited", json!({ "code": code })),
        FaultKind::ControlBits => ("control-bits", json!({})),
        FaultKind::Load { message } => ("load", json!({ "message": message })),
        FaultKind::Protocol { what } => ("protocol", json!({ "what": what })),
    };
    if let Some(object) = evidence.as_object_mut() {
        if let Some(buffer) = &fault.buffer {
            object.insert("buffer".to_owned(), json!(buffer));
        }
        if let Some(side) = fault.side {
            let side = match side {
                Side::Before => "before",
                Side::Inside => "inside",
                Side::After => "after",
            };
            object.insert("side".to_owned(), json!(side));
        }
    }
    End::Fail(code(gate, cause), evidence)
}
