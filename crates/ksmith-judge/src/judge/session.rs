//! An open judge: what it holds over a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ksmith_ledger::{RevealedSeed, Scope, SeedCommitment};
use ksmith_task::{Backend, Candidate, Digest, Instance};
use ksmith_worker::build::{BuildOptions, Refused};
use ksmith_worker::cpu::Wait;

use super::verdict::Binding;
use super::{Halt, JudgeError, JudgeOptions};
use crate::bench::Report;
use crate::cases::{Case, Plan, SecretBook, dev_fills, tiny};
use crate::device::Device;
use crate::gates::{
    Built, Pool, ScreenPool, WorkerOptions, build, check_arm, measure_roofs, retimed, screen_pool,
};
use crate::reference::{Oracle, OracleOptions};

/// Judges candidates for one task instance.
#[derive(Debug)]
pub struct Judge {
    pub(super) instance: Instance,
    pub(super) options: JudgeOptions,
    pub(super) oracle: Oracle,
    pub(super) book: SecretBook,
    pub(super) binding: Binding,
    /// Options of workers whose calls are not timed.
    pub(super) untimed: WorkerOptions,
    pub(super) build: BuildOptions,
    pub(super) scratch: PathBuf,
    pub(super) baseline: Built,
    pub(super) champion: Built,
    pub(super) flag_control: Option<Built>,
    pub(super) tiny: Vec<Arc<Case>>,
    pub(super) dev: Vec<(String, Arc<Case>)>,
    pub(super) champion_ns: BTreeMap<String, u64>,
    pub(super) screening: Option<ScreenPool>,
    /// The decision's pool on a device, drawn once in a run, with the shapes that it is for.
    pub(super) kept_pool: Option<(Vec<(String, i64)>, Pool)>,
    pub(super) report: Option<Report>,
    pub(super) halt: Halt,
    pub(super) halted: bool,
    /// Last: it holds the device, on which the pools lie.
    pub(super) worker: WorkerOptions,
}

/// Time that the reference may take for one case.
const REFERENCE_LIMIT: Duration = Duration::from_secs(60);
/// Tiny shapes of the smoke gate.
const TINY: usize = 5;

impl Judge {
    /// Compiles reference and baseline, and checks that the baseline passes its own task.
    ///
    /// # Errors
    /// When we cannot judge: see [`JudgeError`].
    pub fn open(instance: &Instance, options: JudgeOptions) -> Result<Self, JudgeError> {
        let contract = instance.task().contract();
        let folder = contract
            .baseline
            .get(&options.backend)
            .ok_or(JudgeError::NoBaseline(options.backend.name()))?;
        let path = instance.task().dir().join(folder);
        let baseline = Candidate::load(&path).map_err(|source| JudgeError::Baseline {
            path: path.clone(),
            source,
        })?;
        fs::create_dir_all(&options.cache).map_err(JudgeError::io("could not make the judge's cache"))?;
        let mut options = options;
        // Boxes show paths by their absolute names.
        options.cache =
            fs::canonicalize(&options.cache).map_err(JudgeError::io("could not find the judge's cache"))?;
        let backend = options.backend;
        let (worker, tier) = worker_options(instance, &options)?;
        if let Some(device) = &worker.device {
            // Their contexts come up while cases are drawn.
            device.keep(2);
        }
        let mut build_options = BuildOptions::new(&options.cache.join("libraries"));
        build_options.least = options.least;
        build_options.unsandboxed = options.unsandboxed;
        let scratch = options.cache.join("sources");

        let plan = Plan::dev(instance).on(backend);
        let shapes = tiny(instance, &mut plan.decisions("tiny"), TINY);
        let some = shapes
            .first()
            .ok_or_else(|| JudgeError::Shapes("no shape satisfies the axes".to_owned()))?;
        let mut oracle = Oracle::open(
            instance,
            some,
            OracleOptions {
                cache: options.cache.join("references"),
                least: options.least,
                unsandboxed: options.unsandboxed,
                limit: REFERENCE_LIMIT,
            },
        )?;
        let mut specs: Vec<_> = (0..)
            .zip(&shapes)
            .map(|(number, bound)| plan.case(bound, dev_fills(bound), "tiny", number))
            .collect();
        let mut cases = Vec::new();
        for spec in &specs {
            cases.push(Arc::new(oracle.case(spec)?));
        }
        if let Some(device) = &worker.device {
            specs.extend(plan.device_checks(some)?);
            oracle.use_device(device, instance, &specs)?;
        }
        let (names, specs): (Vec<_>, Vec<_>) = plan.workloads(0)?.into_iter().unzip();
        let mut made = Vec::new();
        oracle.cases(&specs, &mut |case| {
            made.push(Arc::new(case));
            Ok(())
        })?;
        let dev: Vec<(String, Arc<Case>)> = names.into_iter().zip(made).collect();
        if let Some(device) = &worker.device {
            measure_roofs(device, &dev)?;
            device.keep(2);
        }
        let built = match build(
            instance,
            &baseline,
            &scratch,
            &build_options,
            worker.device.as_deref(),
        )? {
            Ok(built) => built,
            Err(refused) => {
                return Err(JudgeError::BaselineFails {
                    code: refused.code.to_owned(),
                    evidence: refused.stderr,
                });
            }
        };
        let binding = Binding {
            scope: match backend {
                Backend::Cpu => Scope::Cpu,
                Backend::Cuda => Scope::Cuda,
            },
            tier,
            isolation: isolation(&options),
            task: task_digest(instance, &baseline)?,
            judge: own_digest()?,
            device: ksmith_machine::Machine::read().digest(),
        };
        let book =
            SecretBook::open(&options.secrets).map_err(JudgeError::io("could not open the secrets file"))?;
        let untimed = WorkerOptions {
            wait: if options.turns.is_some() {
                Wait::Hybrid
            } else {
                worker.wait
            },
            ..worker.clone()
        };
        let mut judge = Self {
            instance: instance.clone(),
            options,
            oracle,
            book,
            binding,
            untimed,
            worker,
            build: build_options,
            scratch,
            champion: built.clone(),
            baseline: built,
            flag_control: None,
            tiny: cases,
            dev,
            champion_ns: BTreeMap::new(),
            screening: None,
            kept_pool: None,
            report: None,
            halt: Halt::default(),
            halted: false,
        };
        judge.admit(&judge.baseline.clone())?;
        Ok(judge)
    }

    /// Checks an arm on the visible cases and notes its times.
    fn admit(&mut self, built: &Built) -> Result<(), JudgeError> {
        let cases: Vec<Arc<Case>> = self
            .tiny
            .iter()
            .cloned()
            .chain(self.dev.iter().map(|(_, case)| Arc::clone(case)))
            .collect();
        let fails = |(code, evidence)| JudgeError::BaselineFails { code, evidence };
        check_arm(built, &cases, &self.oracle, &self.worker)?.map_err(fails)?;
        // Times come from further cases: the first call of a process says little.
        let plan = Plan::dev(&self.instance).on(self.options.backend);
        for (name, spec) in plan.workloads(0)? {
            // Times on a device hardly scatter, and a case of a large workload is dear.
            let most = if self.worker.device.is_some() { 3 } else { 4 };
            let specs: Vec<_> = (1..most)
                .map(|number| plan.case(&spec.bound, spec.fills.clone(), &spec.stream, number))
                .collect();
            let mut cases = Vec::new();
            self.oracle.cases(&specs, &mut |case| {
                cases.push(Arc::new(case));
                Ok(())
            })?;
            let times = check_arm(built, &cases, &self.oracle, &self.worker)?.map_err(fails)?;
            self.champion_ns
                .insert(name, times.into_iter().min().unwrap_or(1_000_000));
        }
        Ok(())
    }

    /// Makes an accepted candidate the performance reference of the verdicts to come.
    ///
    /// # Errors
    /// When it cannot be built again, or fails the visible cases.
    pub fn set_champion(&mut self, candidate: &Candidate) -> Result<(), JudgeError> {
        let built = self.built(candidate)?;
        self.admit(&built)?;
        self.champion = built;
        self.screening = match self.screening.take() {
            // The cases stay: drawing those of a large workload takes seconds.
            Some(pool) if self.worker.device.is_some() => {
                Some(retimed(pool, &self.oracle, &self.champion, &self.worker)?)
            }
            Some(_) | None => None,
        };
        Ok(())
    }

    /// Registers the flag control: the baseline's source under the best flag set.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn set_flag_control(&mut self, candidate: &Candidate) -> Result<(), JudgeError> {
        self.flag_control = Some(self.built(candidate)?);
        Ok(())
    }

    /// Builds a candidate; one that does not compile is an answer.
    pub(super) fn compiled(&self, candidate: &Candidate) -> Result<Result<Built, Refused>, JudgeError> {
        build(
            &self.instance,
            candidate,
            &self.scratch,
            &self.build,
            self.worker.device.as_deref(),
        )
    }

    fn built(&self, candidate: &Candidate) -> Result<Built, JudgeError> {
        self.compiled(candidate)?
            .map_err(|refused| JudgeError::BaselineFails {
                code: refused.code.to_owned(),
                evidence: refused.stderr,
            })
    }

    /// Draws a case and its expectations, for the audit.
    pub(crate) fn oracle_case(&mut self, spec: &crate::cases::CaseSpec) -> Result<Case, JudgeError> {
        Ok(self.oracle.case(spec)?)
    }

    /// The reference's expectations of given inputs, for the audit.
    pub(crate) fn oracle_expect(
        &mut self,
        bound: &ksmith_task::Bound,
        inputs: &crate::cases::Inputs,
    ) -> Result<Vec<crate::cases::Expected>, JudgeError> {
        Ok(self.oracle.expect(bound, inputs)?)
    }

    /// The task's own checkers.
    pub(crate) fn checkers(&self) -> &crate::reference::Checkers {
        self.oracle.checkers_ref()
    }

    /// The screening bench's cached cases, drawn at first use and after each new champion.
    pub(super) fn screening(&mut self) -> Result<ScreenPool, JudgeError> {
        if let Some(pool) = &self.screening {
            return Ok(pool.clone());
        }
        let (secret, _) = self
            .book
            .once("screen")
            .map_err(JudgeError::io("could not draw the screening secret"))?;
        let pool = screen_pool(
            &self.instance,
            &mut self.oracle,
            &secret,
            &self.champion,
            &self.worker,
            self.options.backend,
        )?;
        self.screening = Some(pool.clone());
        Ok(pool)
    }

    /// From now on a step ends early when `halt` says so: its verdict is `error` and says nothing.
    pub fn halt_when(&mut self, halt: Halt) {
        self.halt = halt;
    }

    /// Whether the last step ended early because it was halted; its verdict is to be thrown away.
    pub fn was_halted(&self) -> bool {
        self.halted
    }

    /// Compiles candidates into the cache, on all CPUs. Never call it while something is timed. What does not compile,
    /// or does not fit the policy, is found when its turn comes. On a device it only begins to: compilations go on beside
    /// the quick pass, and a full pass waits for their end.
    pub fn build_ahead(&self, candidates: &[Candidate]) {
        if let Some(device) = &self.worker.device {
            let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            device
                .compiler
                .ahead(&self.instance, candidates, (threads / 2).max(1));
            device.prepare(2);
            return;
        }
        let (instance, scratch, options, halt) = (&self.instance, &self.scratch, &self.build, &self.halt);
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                if halt.is_wanted() {
                    return;
                }
                if candidate.check_policy(instance).is_ok() {
                    let _ = build(instance, candidate, scratch, options, None);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..cpus.min(candidates.len()) {
                scope.spawn(work);
            }
        });
    }

    /// The measurement behind the last verdict of [`Judge::score`], with its raw samples.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Nanoseconds of one call of the champion by workload, as noted when it was admitted: rough, never a claim.
    pub fn call_ns(&self) -> &BTreeMap<String, u64> {
        &self.champion_ns
    }

    /// Draws the secrets of the next quick pass without using them: their commitments can be recorded before it.
    ///
    /// # Errors
    /// When the secrets file cannot be written.
    pub fn promise_screen(&mut self) -> Result<(), JudgeError> {
        self.book
            .promise_once("screen")
            .map_err(JudgeError::io("could not draw the screening secret"))
    }

    /// Draws the secrets of the next full pass without using them: its cases, both stages of the bench, the slope test.
    ///
    /// # Errors
    /// When the secrets file cannot be written.
    pub fn promise_score(&mut self) -> Result<(), JudgeError> {
        ["score", "bench", "confirm", "slope"]
            .into_iter()
            .try_for_each(|kind| self.book.promise(kind))
            .map_err(JudgeError::io("could not draw the scoring's secrets"))
    }

    /// Commitments to the secrets drawn so far, used or only promised.
    pub fn commitments(&self) -> Vec<SeedCommitment> {
        self.book.commitments()
    }

    /// All secrets in clear, for the closing record.
    pub fn reveal(&self) -> Vec<RevealedSeed> {
        self.book.reveal()
    }

    /// Hash of all that a verdict of this judge is bound to beside the candidate.
    pub fn task_digest(&self) -> Digest {
        self.binding.task
    }
}

fn worker_options(
    instance: &Instance,
    options: &JudgeOptions,
) -> Result<(WorkerOptions, String), JudgeError> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let policy = instance
        .task()
        .contract()
        .policy
        .threads
        .map(|threads| threads as usize);
    let threads = options
        .threads
        .or(policy)
        .unwrap_or(cpus.saturating_sub(1))
        .max(1);
    let shares = threads >= cpus;
    let device = match options.backend {
        Backend::Cpu => None,
        Backend::Cuda => Some(Device::open(options.least, options.unsandboxed)?),
    };
    let tier = match &device {
        Some(device) => device.tier(),
        None if shares => "native, judge-shares-cpu".to_owned(),
        None => "native".to_owned(),
    };
    let worker = WorkerOptions {
        threads,
        cpus: Vec::new(),
        nice: 0,
        rivals: 0,
        wait: if shares { Wait::Hybrid } else { Wait::Spin },
        least: options.least,
        unsandboxed: options.unsandboxed,
        device,
    };
    Ok((worker, tier))
}

fn isolation(options: &JudgeOptions) -> String {
    let name = ksmith_box::probe().name();
    if options.unsandboxed {
        format!("{name}, unsandboxed by the user")
    } else {
        name.to_owned()
    }
}

/// The contract's text, the files that it trusts, and the baseline, under this assignment of types.
fn task_digest(instance: &Instance, baseline: &Candidate) -> Result<Digest, JudgeError> {
    let contract = instance.task().contract();
    let mut files = vec![contract.reference.source.clone()];
    files.extend(
        contract
            .generator
            .iter()
            .map(|generator| generator.source.clone()),
    );
    files.extend(contract.hidden.traces.iter().map(|trace| trace.file.clone()));
    let mut parts = vec![
        ("instance".to_owned(), instance.id().into_bytes()),
        ("task.toml".to_owned(), instance.task().text().as_bytes().to_vec()),
        ("baseline".to_owned(), baseline.digest().to_string().into_bytes()),
    ];
    if let Some(folder) = &contract.reference.cuda
        && baseline.backend() == Backend::Cuda
    {
        let path = instance.task().dir().join(folder);
        let reference = Candidate::load(&path)
            .map_err(|error| JudgeError::Unsupported(format!("the reference for the device: {error}")))?;
        parts.push((
            "reference for the device".to_owned(),
            reference.digest().to_string().into_bytes(),
        ));
    }
    for file in files {
        let bytes =
            fs::read(instance.task().dir().join(&file)).map_err(JudgeError::io("could not read the task"))?;
        parts.push((file.display().to_string(), bytes));
    }
    Ok(Digest::of_parts(
        parts
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    ))
}

/// Hash of the running executable: the judge's own build.
fn own_digest() -> Result<Digest, JudgeError> {
    static DIGEST: std::sync::OnceLock<Digest> = std::sync::OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(*digest);
    }
    let bytes =
        fs::read("/proc/self/exe").map_err(JudgeError::io("could not read the judge's own executable"))?;
    Ok(*DIGEST.get_or_init(|| Digest::of(&bytes)))
}
