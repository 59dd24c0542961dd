//! The bench's host: real workers, pools of secret cases, a comparison after every timed call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ksmith_ledger::Gate;
use ksmith_machine::DeviceSample;
use ksmith_task::{Backend, Instance, chain};
use serde_json::json;

use super::context::{Built, End, blamed};
use super::runner::{Runner, RunnerError, Setup, WorkerOptions};
use crate::bench::{
    Arm, BaselineArm, CaseId, Distribution, Fault, FlagControlArm, Host, Load, Plan as BenchPlan, Role,
    Settings, Stage, TimedCall, Workload,
};
use crate::cases::{
    Case, CaseSpec, Plan, Secret, SecretBook, bind, distribution_fills, distributions, neighbour,
};
use crate::codes::code;
use crate::device::{Resident, TimingLock};
use crate::judge::{Halt, JudgeError};
use crate::reference::{Checkers, Oracle};

/// A workload as it is timed: its sizes and how long the champion takes.
#[derive(Debug, Clone)]
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) weight: f64,
    pub(crate) bound: Arc<ksmith_task::Bound>,
    pub(crate) champion_ns: u64,
    pub(crate) kinds: usize,
}

/// Name of the timed workload whose shape is secret.
pub(crate) const HIDDEN_NEIGHBOUR: &str = "hidden neighbour";
/// Distributions timed per workload, at most.
const KINDS: usize = 5;
/// The same on a device, where a case of a large workload takes most of a second to draw and to expect.
const DEVICE_KINDS: usize = 2;
/// Weight of the hidden neighbour, as a share of the mean weight of the dev workloads.
const NEIGHBOUR_WEIGHT: f64 = 0.1;
/// The longest wait for a quiet moment between two looks at the halt.
const QUIET_STEP: Duration = Duration::from_millis(500);
/// Late probes run at timed shapes of at most this storage.
const LATE_BYTES: u64 = 4 << 20;
/// Memory that one stage's pool may take on this host, in bytes; expectations in float64 count.
const POOL_BYTES: u64 = 1 << 30;
/// The same on a device.
const DEVICE_POOL_BYTES: u64 = 64 << 30;
/// A decision's pool on a device is kept beside that of the confirmation up to this estimate of its size, in bytes.
const KEPT_BYTES: u64 = 24 << 30;
/// A case takes about so many times its storage: expectations and scales are float64.
const CASE_SHARE: u64 = 4;

/// Dev workloads, and a hidden neighbour of one of them.
pub(crate) fn timed_workloads(
    instance: &Instance,
    backend: Backend,
    secret: &Secret,
    champion_ns: &dyn Fn(&str) -> u64,
) -> Result<Vec<Timed>, JudgeError> {
    let most_kinds = match backend {
        Backend::Cpu => KINDS,
        Backend::Cuda => DEVICE_KINDS,
    };
    let mut timed = Vec::new();
    let workloads: Vec<_> = instance.workloads(backend).collect();
    for workload in &workloads {
        let bound = bind(instance, &workload.name, &workload.axes)?;
        timed.push(Timed {
            name: workload.name.clone(),
            weight: workload.weight,
            kinds: distributions(instance, &bound).min(most_kinds),
            champion_ns: champion_ns(&workload.name),
            bound,
        });
    }
    let mut stream = Plan::hidden(instance, secret).decisions("timed neighbour");
    if let Some(workload) = workloads.get(stream.below(workloads.len() as u64) as usize)
        && let Some(bound) = neighbour(instance, &mut stream, &workload.axes)
    {
        let mean = timed.iter().map(|timed| timed.weight).sum::<f64>() / timed.len().max(1) as f64;
        timed.push(Timed {
            name: HIDDEN_NEIGHBOUR.to_owned(),
            weight: mean * NEIGHBOUR_WEIGHT,
            kinds: match backend {
                Backend::Cpu => distributions(instance, &bound).min(KINDS),
                Backend::Cuda => 1,
            },
            champion_ns: champion_ns(&workload.name),
            bound,
        });
    }
    Ok(timed)
}

/// The bench's plan for these workloads.
pub(crate) fn bench_plan(
    timed: &[Timed],
    backend: Backend,
    settings: Settings,
    baseline: BaselineArm,
    flag_control: FlagControlArm,
) -> BenchPlan {
    let room = match backend {
        Backend::Cpu => POOL_BYTES,
        Backend::Cuda => DEVICE_POOL_BYTES,
    };
    let total: u64 = timed
        .iter()
        .map(|timed| wanted(timed, &settings) * timed.kinds as u64 * timed.bound.storage_bytes() * CASE_SHARE)
        .sum();
    let scale = (room as f64 / total.max(1) as f64).min(1.0);
    BenchPlan {
        workloads: timed
            .iter()
            .map(|timed| Workload {
                name: timed.name.clone(),
                weight: timed.weight,
                distributions: (0..timed.kinds)
                    .map(|kind| Distribution {
                        name: format!("distribution {kind}"),
                        cases: ((wanted(timed, &settings) as f64 * scale) as u32).max(8),
                    })
                    .collect(),
            })
            .collect(),
        baseline,
        flag_control,
        settings,
    }
}

fn wanted(timed: &Timed, settings: &Settings) -> u64 {
    u64::from(settings.cases_needed(timed.champion_ns, timed.kinds as u32))
}

/// Starts workers, draws pools, keeps the time.
pub(crate) struct BenchHost<'j> {
    pub(crate) instance: &'j Instance,
    pub(crate) oracle: &'j mut Oracle,
    pub(crate) book: &'j mut SecretBook,
    pub(crate) worker: &'j WorkerOptions,
    pub(crate) plan: BenchPlan,
    pub(crate) timed: Vec<Timed>,
    pub(crate) candidate: &'j Built,
    pub(crate) champion: &'j Built,
    pub(crate) baseline: &'j Built,
    pub(crate) flag_control: Option<&'j Built>,
    pub(crate) started: Instant,
    pub(crate) pool: Pool,
    /// What the candidate is shown at the end of each set.
    pub(crate) late: Arc<Vec<Case>>,
    pub(crate) late_secret: Secret,
    pub(crate) halt: Halt,
    pub(crate) backend: Backend,
    /// The decision's pool of earlier scorings: on a device it serves a whole run where there is memory for it, since
    /// every worker is new to it.
    pub(crate) kept: &'j mut Option<(Vec<(String, i64)>, Pool)>,
    /// Held while a stage measures on a device.
    pub(crate) lock: Option<TimingLock>,
}

/// The cases of one stage, by workload, distribution, index.
pub(crate) type Pool = Arc<Vec<Vec<Vec<Case>>>>;

/// Draws cases and, where candidates run on a device, puts them there; what the host needs no more is dropped.
pub(crate) fn shown(
    oracle: &mut Oracle,
    worker: &WorkerOptions,
    specs: &[CaseSpec],
    halt: Option<&Halt>,
) -> Result<Vec<Case>, JudgeError> {
    let mut ready = Vec::with_capacity(specs.len());
    oracle.cases(specs, &mut |mut case| {
        if halt.is_some_and(Halt::is_wanted) {
            return Err(JudgeError::Halted);
        }
        if case.resident.is_none()
            && let Some(device) = &worker.device
        {
            let resident = Resident::of(device, &case).map_err(|error| crate::device::ours(&error))?;
            case.resident = resident.map(Arc::new);
        }
        // Only what is revealed and what is expected stays: a pool is large.
        if !keeps_values(&case) {
            case.inputs.values.clear();
        }
        if case.resident.is_some() {
            case.storage.clear();
            case.expected.clear();
        }
        ready.push(case);
        Ok(())
    })?;
    Ok(ready)
}

impl BenchHost<'_> {
    fn draw_pool(&mut self, secret: &Secret) -> Result<Pool, JudgeError> {
        let plan = Plan::hidden(self.instance, secret).on(self.backend);
        let mut offsets = plan.decisions("bench distributions");
        let mut pool = Vec::new();
        for (workload, timed) in self.plan.workloads.iter().zip(&self.timed) {
            let mut kinds = Vec::new();
            for (kind, distribution) in workload.distributions.iter().enumerate() {
                let fills = distribution_fills(self.instance, &timed.bound, kind, &mut offsets)?;
                let stream = format!("bench {} {kind}", workload.name);
                let specs: Vec<CaseSpec> = (0..distribution.cases)
                    .map(|index| plan.case(&timed.bound, fills.clone(), &stream, u64::from(index)))
                    .collect();
                kinds.push(shown(self.oracle, self.worker, &specs, Some(&self.halt))?);
            }
            pool.push(kinds);
        }
        Ok(Arc::new(pool))
    }

    /// Late probes at the timed shapes that are not large.
    fn draw_late(&mut self, secret: &Secret) -> Result<Arc<Vec<Case>>, JudgeError> {
        let plan = Plan::hidden(self.instance, secret).on(self.backend);
        let bounds = self.timed.iter().map(|timed| Arc::clone(&timed.bound));
        let shapes: Vec<_> = bounds
            .filter(|bound| bound.storage_bytes() <= LATE_BYTES)
            .collect();
        let specs = plan.late_probes(&shapes)?;
        Ok(Arc::new(shown(
            self.oracle,
            self.worker,
            &specs,
            Some(&self.halt),
        )?))
    }

    /// The pool of a decision on a device: drawn once in a run for these shapes, unless it takes too much memory.
    fn kept_pool(&mut self) -> Result<Pool, JudgeError> {
        let shapes: Vec<(String, i64)> = self
            .timed
            .iter()
            .flat_map(|timed| timed.bound.axes.iter().cloned())
            .collect();
        if let Some((kept, pool)) = self.kept.as_ref()
            && *kept == shapes
        {
            return Ok(Arc::clone(pool));
        }
        *self.kept = None;
        let (secret, _) = self
            .book
            .draw("bench")
            .map_err(JudgeError::io("could not draw the bench's secret"))?;
        let pool = self.draw_pool(&secret)?;
        *self.kept = Some((shapes, Arc::clone(&pool)));
        Ok(pool)
    }

    /// Estimate of one pool's size in bytes.
    fn pool_bytes(&self) -> u64 {
        let cases = |workload: &Workload| -> u64 {
            workload
                .distributions
                .iter()
                .map(|kind| u64::from(kind.cases))
                .sum()
        };
        self.plan
            .workloads
            .iter()
            .zip(&self.timed)
            .map(|(workload, timed)| cases(workload) * timed.bound.storage_bytes() * CASE_SHARE)
            .sum()
    }

    fn built(&self, role: Role) -> &Built {
        match role {
            Role::Candidate => self.candidate,
            Role::Champion | Role::Copy => self.champion,
            Role::Baseline => self.baseline,
            Role::FlagControl => self.flag_control.unwrap_or(self.baseline),
        }
    }
}

/// Index comparisons and checkers read the inputs again.
fn keeps_values(case: &Case) -> bool {
    use ksmith_task::contract::Compare;
    case.spec.bound.outputs().any(|tensor| match &tensor.role {
        ksmith_task::Role::Output(rule) => {
            matches!(rule.compare, Compare::Index { .. } | Compare::Checker { .. })
        }
        ksmith_task::Role::Input(_) => false,
    })
}

fn broken(error: &dyn std::error::Error) -> Fault {
    Fault::Judge(chain(error))
}

impl<'j> Host for BenchHost<'j> {
    type Arm = BenchArm<'j>;

    fn begin(&mut self, stage: Stage) -> Result<(), Fault> {
        self.pool = Arc::default();
        if stage == Stage::Confirmation && self.pool_bytes() > KEPT_BYTES {
            *self.kept = None;
        }
        self.late = Arc::default();
        if self.backend == Backend::Cpu {
            let secret = self.late_secret.derive("stage", stage as u64);
            self.late = self.draw_late(&secret).map_err(|error| broken(&error))?;
        }
        self.pool = match (stage, self.backend) {
            (Stage::Decision, Backend::Cuda) => self.kept_pool().map_err(|error| broken(&error))?,
            (stage, _) => {
                let kind = match stage {
                    Stage::Decision => "bench",
                    Stage::Confirmation => "confirm",
                };
                let (secret, _) = self.book.draw(kind).map_err(|error| broken(&error))?;
                self.draw_pool(&secret).map_err(|error| broken(&error))?
            }
        };
        if let Some(device) = &self.worker.device {
            device.compiler.settle();
            device.settle();
            self.lock = Some(device.lock().map_err(|error| broken(&error))?);
        }
        Ok(())
    }

    fn end(&mut self, _stage: Stage) {
        self.lock = None;
    }

    fn sample(&mut self) -> Option<DeviceSample> {
        self.worker.device.as_ref()?.sample()
    }

    fn prepare(&mut self, arms: usize) {
        if let Some(device) = &self.worker.device {
            device.prepare(arms);
            device.settle();
        }
    }

    fn start(&mut self, role: Role, _set: u32) -> Result<Self::Arm, Fault> {
        if self.halt.is_wanted() {
            return Err(broken(&JudgeError::Halted));
        }
        let built = self.built(role);
        let runner = match Runner::start(built, self.worker) {
            Ok(runner) => runner,
            Err(error) => return Err(arm_fault(Gate::PostBench, error)),
        };
        let longest = self
            .timed
            .iter()
            .map(|timed| timed.champion_ns)
            .max()
            .unwrap_or(0);
        Ok(BenchArm {
            runner,
            pool: Arc::clone(&self.pool),
            late: Arc::clone(&self.late),
            deadlines: self
                .timed
                .iter()
                .map(|timed| deadline(timed.champion_ns.max(longest / 64)))
                .collect(),
            checkers: self.oracle.checkers(),
            _host: std::marker::PhantomData,
        })
    }

    fn quiet(&mut self, limit: Duration) -> Load {
        let began = Instant::now();
        // In short waits, so that a halt is seen.
        let load = loop {
            let left = limit.saturating_sub(began.elapsed());
            let load = ksmith_machine::quiet::wait(left.min(QUIET_STEP));
            if load.is_quiet() || load.foreign_cpus.is_none() || left <= QUIET_STEP || self.halt.is_wanted() {
                break load;
            }
        };
        Load {
            other_cpus: load.foreign_cpus,
            waited_s: began.elapsed().as_secs_f64(),
            quiet: load.is_quiet(),
        }
    }

    fn now(&mut self) -> Duration {
        self.started.elapsed()
    }
}

/// Per-call deadline: 4 times the champion and 50 ms (JUDGE, CPU worker). A busy machine gets a second on top: time
/// lost to others is no fault of the arm.
pub(crate) fn deadline(champion_ns: u64) -> Duration {
    Duration::from_nanos(4 * champion_ns) + Duration::from_millis(50) + Duration::from_secs(1)
}

/// One worker of a process set.
pub(crate) struct BenchArm<'j> {
    runner: Runner,
    pool: Pool,
    late: Arc<Vec<Case>>,
    deadlines: Vec<Duration>,
    checkers: Arc<Checkers>,
    _host: std::marker::PhantomData<&'j ()>,
}

impl BenchArm<'_> {
    fn case(&self, id: CaseId) -> Result<(Pool, usize, usize, usize), Fault> {
        let (workload, kind, index) = (id.workload as usize, id.distribution as usize, id.index as usize);
        let known = self
            .pool
            .get(workload)
            .and_then(|kinds| kinds.get(kind))
            .and_then(|cases| cases.get(index));
        match known {
            Some(_) => Ok((Arc::clone(&self.pool), workload, kind, index)),
            None => Err(Fault::Judge(
                "the schedule asked for a case outside its pool".to_owned(),
            )),
        }
    }

    fn setup(&self, case: &Case, workload: usize) -> Setup {
        Setup::new(&case.spec.bound).deadline(
            self.deadlines
                .get(workload)
                .copied()
                .unwrap_or(Duration::from_secs(2)),
        )
    }
}

impl Arm for BenchArm<'_> {
    fn call(&mut self, id: CaseId) -> Result<TimedCall, Fault> {
        let (pool, workload, kind, index) = self.case(id)?;
        let case = &pool[workload][kind][index];
        let setup = self.setup(case, workload);
        let timed = self
            .runner
            .timed(case, setup, &self.checkers)
            .map_err(|error| arm_fault(Gate::PostBench, error))?
            .map_err(wrong_arm)?;
        Ok(TimedCall {
            ns: timed.ns,
            judge_preempted: timed.judge_preempted,
            worker_preempted: timed.worker_preempted,
        })
    }

    fn late(&mut self) -> Result<(), Fault> {
        let late = Arc::clone(&self.late);
        for case in late.iter() {
            let setup = Setup::new(&case.spec.bound);
            self.runner
                .timed(case, setup, &self.checkers)
                .map_err(|error| arm_fault(Gate::PostBench, error))?
                .map_err(wrong_arm)?;
        }
        Ok(())
    }

    fn cpu_time(&mut self) -> Option<Duration> {
        self.runner.cpu_time()
    }
}

fn wrong_arm(cause: &str) -> Fault {
    Fault::Arm {
        code: code(Gate::PostBench, cause),
        evidence: json!({ "class": cause }),
    }
}

/// A worker's fault as the arm's, anything else as ours.
pub(crate) fn arm_fault(gate: Gate, error: RunnerError) -> Fault {
    match blamed(gate, error) {
        Ok(End::Fail(code, evidence)) => Fault::Arm { code, evidence },
        Ok(End::Pass(_) | End::Skipped(_)) => Fault::Judge("a fault without a cause".to_owned()),
        Err(error) => broken(&error),
    }
}
