//! Begins runs: one per dtype instance, in turn, each with a ledger of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ksmith_ledger::{BlobRef, BudgetLimits, Ledger, ObjectStore, RunOpened, Scope};
use ksmith_machine::Machine;
use ksmith_task::{Backend, Digest, Instance, Lock, Task};
use serde::{Deserialize, Serialize};

use crate::contract_review::{self, ContractReview};
use crate::guard::{Guard, judge_digest};
use crate::judgement::Judgement;
use crate::outcome::InstanceOutcome;
use crate::session::{Session, Sitting};
use crate::workshop::{BuiltIn, Setting, Workshop};
use crate::{
    Budget, Event, Mechanism, Memory, Progress, ReviewOptions, RunError, RunOptions, RunOutcome, Sandbox,
    Stage, TypePick, WriterChoice,
};

/// What `run-opened` keeps beyond its named fields, so that `resume` and `verify --replay` need nothing else.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The task's folder at the time; `resume` looks there first.
    pub(crate) task_path: PathBuf,
    /// The task's files, whole.
    pub(crate) task_tree: ksmith_ledger::TreeRef,
    /// Which tier runs the candidates.
    pub(crate) backend: Backend,
    /// Who proposes.
    pub(crate) writer: WriterChoice,
    /// What the user asked of agents.
    #[serde(default)]
    pub(crate) agents: crate::AgentOptions,
    /// Who reviews.
    #[serde(default)]
    pub(crate) review: ReviewOptions,
    /// The review of the contract, with its resolutions, if there was one.
    #[serde(default)]
    pub(crate) contract_review: Option<BlobRef>,
    /// Instances of the same command that come after this one.
    pub(crate) remaining: Vec<String>,
}

/// Runs a task: each instance in turn until its budget, a plateau, its goal, or an interrupt.
///
/// # Errors
/// When a run cannot begin or go on; a goal that is not met is an outcome.
pub fn run(options: &RunOptions, progress: &mut dyn Progress) -> Result<RunOutcome, RunError> {
    run_with(options, &BuiltIn, progress)
}

/// [`run`] with other judges and writers.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    options: &RunOptions,
    workshop: &dyn Workshop,
    progress: &mut dyn Progress,
) -> Result<RunOutcome, RunError> {
    let task = load(&options.task)?;
    let instances = choose(&task, Some(options.backend), &options.types)?;
    for instance in &instances {
        allows_something(budget(instance, options))?;
    }
    run_instances(&instances, options, workshop, progress)
}

/// A budget that allows nothing at all is a slip, found before anything is written.
fn allows_something(budget: Budget) -> Result<(), RunError> {
    match budget.forbids() {
        None => Ok(()),
        Some(what) => Err(RunError::Usage {
            what: format!("the budget allows {what}, so a run could find nothing"),
            fix: "Give `--wall` and `--candidates` more than zero, or the contract's `budget`.".to_owned(),
        }),
    }
}

/// Loads a task by its absolute path: boxes show nothing else.
///
/// # Errors
/// When the contract is wrong.
pub fn load(path: &Path) -> Result<Task, RunError> {
    Ok(Task::load(absolute(path))?)
}

/// The absolute form of a path that exists; others are left for the error that names them.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Runs the first instance that fits the options, and no other.
pub(crate) fn run_first(
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<InstanceOutcome, RunError> {
    let task = load(&options.task)?;
    let instances = choose(&task, Some(options.backend), &options.types)?;
    let Some(first) = instances.first() else {
        return Err(RunError::Internal("a task without instances".into()));
    };
    run_instance(first, &[], budget(first, options), options, &BuiltIn, progress)
}

/// Runs instances in turn; what one leaves of the budget is shared by the rest.
pub(crate) fn run_instances(
    instances: &[Instance],
    options: &RunOptions,
    workshop: &dyn Workshop,
    progress: &mut dyn Progress,
) -> Result<RunOutcome, RunError> {
    let began = Instant::now();
    let mut scored = 0;
    let (mut cost_usd, mut tokens) = (0.0, 0);
    let mut outcomes = Vec::new();
    for (index, instance) in instances.iter().enumerate() {
        let whole = budget(instance, options);
        let left = Budget {
            wall_s: (whole.wall_s - began.elapsed().as_secs_f64()).max(0.0),
            candidates: whole.candidates.saturating_sub(scored),
            cost_usd: (whole.cost_usd - cost_usd).max(0.0),
            tokens: whole.tokens.map(|whole| whole.saturating_sub(tokens)),
        };
        let rest = &instances[index + 1..];
        let outcome = run_instance(
            instance,
            rest,
            left.share(rest.len() + 1),
            options,
            workshop,
            progress,
        )
        .inspect_err(|_| unfinished(&outcomes, &instances[index..], progress))?;
        scored += outcome.candidates;
        cost_usd += outcome.models.cost_usd;
        tokens += outcome.models.tokens;
        let stopped = outcome.outcome == ksmith_ledger::Outcome::Interrupted;
        outcomes.push(outcome);
        if stopped {
            break;
        }
    }
    Ok(RunOutcome { instances: outcomes })
}

/// Says what an error of one instance leaves behind: runs that ended well, and instances that were not tried.
fn unfinished(done: &[InstanceOutcome], left: &[Instance], progress: &mut dyn Progress) {
    for outcome in done {
        let text = format!(
            "{} is done: `ksmith report {}` shows it",
            outcome.instance, outcome.run
        );
        progress.event(&Event::Note(&text));
    }
    for instance in left.iter().skip(1) {
        progress.event(&Event::Note(&format!("{} was not tried", instance.id())));
    }
}

/// The instances that fit the fixed dtypes, on one backend or on any.
pub(crate) fn choose(
    task: &Task,
    backend: Option<Backend>,
    types: &[TypePick],
) -> Result<Vec<Instance>, RunError> {
    let pins: Vec<_> = types
        .iter()
        .map(|pick| (pick.variable.clone(), pick.dtype))
        .collect();
    Ok(match backend {
        Some(backend) => task.instances_on(backend, &pins)?,
        None => task.instances_with(&pins)?,
    })
}

fn budget(instance: &Instance, options: &RunOptions) -> Budget {
    let contract = &instance.task().contract().budget;
    Budget {
        wall_s: options.wall_s.unwrap_or(contract.wall.as_secs_f64()),
        candidates: options.candidates.unwrap_or(u64::from(contract.candidates)),
        cost_usd: options.cost_usd.unwrap_or(contract.cost_usd),
        tokens: options.tokens.or(contract.tokens),
    }
}

fn run_instance(
    instance: &Instance,
    rest: &[Instance],
    budget: Budget,
    options: &RunOptions,
    workshop: &dyn Workshop,
    progress: &mut dyn Progress,
) -> Result<InstanceOutcome, RunError> {
    progress.event(&Event::Stage {
        stage: Stage::Lock,
        candidate: None,
    });
    let task = instance.task();
    let baseline = baseline_folder(instance, options.backend)?;
    let contract_review = contract_review::to_lock(&options.home, task)?;
    let guard = Guard::lock(task, judge_digest()?)?;
    let machine = Machine::read();
    let cache = options
        .mechanisms
        .has(Mechanism::Cache)
        .then(|| crate::tuner::path(&options.home));
    let (id, dir) = name_run(&options.home, instance)?;
    let (recorder, wishes) = crate::recorder(ObjectStore::new(&dir));
    let setting = Setting {
        instance,
        backend: options.backend,
        run: &dir,
        cache: cache.as_deref(),
        sandbox: options.sandbox,
        agents: &options.agents,
        host: &options.agent_host,
        account: crate::Account::new(&budget),
        recorder,
        interrupt: options.interrupt.clone(),
    };
    // Before a folder is made: a writer that cannot be had leaves nothing behind.
    let writer = workshop.writer(&options.writer, &setting)?;
    let judgement = Judgement::begin(
        workshop,
        &options.mechanisms,
        &options.review,
        &options.writer,
        options.agents.model.as_deref(),
    )?;
    std::fs::create_dir_all(&dir).map_err(RunError::io("create", &dir))?;
    let arena = workshop
        .arena(instance, options.backend, &dir, options.sandbox)
        .inspect_err(|_| {
            // No ledger, no run: what the judge left there is of no use.
            let _ = std::fs::remove_dir_all(&dir);
        })?;
    let mut ledger = Ledger::create(&dir)?;
    let opened = opening(Opening {
        id: &id,
        instance,
        rest,
        budget,
        options,
        machine: &machine,
        guard: &guard,
        baseline: &baseline,
        writer: writer.name(),
        reviewer: judgement.reviewer_name(),
        contract_review: contract_review.as_ref(),
        commitments: arena.commitments(),
        objects: ledger.objects(),
    })?;
    let lock_file = dir.join("task.lock.json");
    if let Some(blob) = opened.lock_file {
        let text = ledger.objects().get(blob.blob)?;
        std::fs::write(&lock_file, text).map_err(RunError::io("write", &lock_file))?;
    }
    let mut memory = Memory::default();
    let record = ledger.append(opened.clone())?;
    let time = record.unix_seconds().unwrap_or_default();
    memory
        .apply(&opened.into(), time)
        .map_err(|source| RunError::Record {
            run: dir.clone(),
            source,
        })?;
    progress.event(&Event::Started {
        run: &id,
        instance: &instance.id(),
        budget,
    });
    let mut session = Session {
        ledger,
        memory,
        instance: instance.clone(),
        backend: options.backend,
        task_argument: options.task.display().to_string(),
        baseline,
        guard,
        arena,
        writer,
        wishes,
        judgement,
        mechanisms: options.mechanisms.clone(),
        seed: options.seed,
        interrupt: options.interrupt.clone(),
        progress,
        writer_is_exhausted: false,
        lessons: BTreeMap::new(),
        last_record: Instant::now(),
    };
    session.say_remarks()?;
    finish(
        &mut session,
        &dir,
        options.signing_key.as_deref(),
        cache.as_deref(),
    )
}

/// Drives a session and leaves its views, report and certificate behind, however it ends.
pub(crate) fn finish(
    session: &mut Session<'_>,
    dir: &Path,
    signing_key: Option<&Path>,
    cache: Option<&Path>,
) -> Result<InstanceOutcome, RunError> {
    let driven = session.drive();
    let wall_s = session.memory.spent.wall_s;
    let written = crate::steps::write_files(dir, signing_key);
    if let (Sitting::Closed, Some(cache)) = (driven?, cache)
        && let Some(cause) = crate::tuner::remember(
            &ksmith_ledger::History::load(dir)?,
            &session.instance,
            session.backend,
            cache,
        )
    {
        session
            .progress
            .event(&Event::Note(&format!("the tuner cache was not written: {cause}")));
    }
    for note in written? {
        session.progress.event(&Event::Note(&note));
    }
    InstanceOutcome::read(dir, wall_s)
}

/// The folder of the baseline for a backend.
pub(crate) fn baseline_folder(instance: &Instance, backend: Backend) -> Result<PathBuf, RunError> {
    let task = instance.task();
    let relative = task
        .contract()
        .baseline
        .get(&backend)
        .ok_or_else(|| RunError::Usage {
            what: format!(
                "task `{}` names no baseline for {}",
                task.contract().name,
                backend.name()
            ),
            fix: format!(
                "Add `baseline = {{ {} = \"..\" }}` to the contract.",
                backend.name()
            ),
        })?;
    Ok(task.dir().join(relative))
}

/// A fresh id and the path of its folder, which is not made yet. A few random digits come first, so that a short prefix
/// is enough to name a run.
fn name_run(home: &Path, instance: &Instance) -> Result<(String, PathBuf), RunError> {
    let mut bytes = [0u8; 4];
    getrandom::fill(&mut bytes)
        .map_err(|error| RunError::Internal(format!("the system gives no random numbers: {error}")))?;
    let types: String = instance
        .types()
        .iter()
        .map(|(_, dtype)| format!("-{dtype}"))
        .collect();
    let id = format!(
        "{:08x}-{}{types}",
        u32::from_be_bytes(bytes),
        instance.task().contract().name
    );
    let dir = absolute(home).join(ksmith_ledger::runs::RUNS_DIR).join(&id);
    Ok((id, dir))
}

struct Opening<'a> {
    id: &'a str,
    instance: &'a Instance,
    rest: &'a [Instance],
    budget: Budget,
    options: &'a RunOptions,
    machine: &'a Machine,
    guard: &'a Guard,
    baseline: &'a Path,
    writer: String,
    reviewer: Option<String>,
    contract_review: Option<&'a ContractReview>,
    commitments: Vec<ksmith_ledger::SeedCommitment>,
    objects: &'a ObjectStore,
}

fn opening(opening: Opening<'_>) -> Result<RunOpened, RunError> {
    let Opening {
        instance,
        options,
        machine,
        guard,
        objects,
        ..
    } = opening;
    let task = instance.task();
    let contract = task.contract();
    let lock = guard.locked();
    let mut files = Vec::new();
    for name in lock.files.keys() {
        let path = task.dir().join(name);
        files.push((
            name.clone(),
            std::fs::read(&path).map_err(RunError::io("read", &path))?,
        ));
    }
    let task_tree = objects.put_files(
        files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
    )?;
    let lock_text = serde_json::to_string_pretty(lock)
        .map_err(|error| RunError::Internal(format!("the lock cannot be written: {error}")))?;
    let contract_review = match opening.contract_review {
        Some(review) => {
            let text = serde_json::to_string_pretty(review)
                .map_err(|error| RunError::Internal(format!("the review cannot be written: {error}")))?;
            Some(objects.put(text.as_bytes())?)
        }
        None => None,
    };
    let mut locks = locks(lock);
    locks.extend(contract_review.map(|blob| ("review".to_owned(), blob.blob)));
    let scope = match options.backend {
        Backend::Cpu => Scope::Cpu,
        Backend::Cuda => Scope::Cuda,
    };
    let kept = Kept {
        task_path: task
            .dir()
            .canonicalize()
            .unwrap_or_else(|_| task.dir().to_owned()),
        task_tree,
        backend: options.backend,
        writer: options.writer.clone(),
        agents: options.agents.clone(),
        review: options.review.clone(),
        contract_review,
        remaining: opening.rest.iter().map(Instance::id).collect(),
    };
    let compiler = machine
        .compilers
        .first()
        .map_or_else(|| "none".to_owned(), |found| found.banner.clone());
    Ok(RunOpened {
        run: opening.id.to_owned(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.clone(),
        task: contract.name.clone(),
        instance: instance.id(),
        scope,
        scope_note: scope.sentence().to_owned(),
        contract: objects.put(task.full().as_bytes())?,
        locks,
        lock_file: Some(objects.put(lock_text.as_bytes())?),
        baseline: objects.put_tree(opening.baseline)?,
        machine: serde_json::to_value(machine)
            .map_err(|error| RunError::Internal(format!("the machine record cannot be written: {error}")))?,
        device: machine.digest(),
        device_name: machine.summary(),
        compiler,
        isolation: ksmith_box::probe().name().to_owned(),
        unsandboxed: options.sandbox == Sandbox::Unsandboxed,
        tier: match options.backend {
            Backend::Cpu => "native".to_owned(),
            Backend::Cuda => "device".to_owned(),
        },
        protocol: contract.performance.protocol.name.clone(),
        goal: contract.performance.goal,
        mechanisms: options.mechanisms.switches(),
        writer: opening.writer,
        reviewer: opening.reviewer,
        budget: BudgetLimits {
            wall_s: Some(opening.budget.wall_s).filter(|wall| wall.is_finite()),
            candidates: Some(opening.budget.candidates),
            cost_usd: Some(opening.budget.cost_usd),
            tokens: opening.budget.tokens,
            device_s: None,
        },
        search_seed: Some(options.seed),
        seeds: opening.commitments,
        options: serde_json::to_value(kept)
            .map_err(|error| RunError::Internal(format!("the options cannot be written: {error}")))?,
    })
}

/// Hashes of contract, judge and each locked file, and one of all.
fn locks(lock: &Lock) -> BTreeMap<String, Digest> {
    let mut locks = BTreeMap::from([
        ("task".to_owned(), lock.digest()),
        ("contract".to_owned(), lock.contract),
        ("judge".to_owned(), lock.judge),
    ]);
    for (name, digest) in &lock.files {
        locks.insert(format!("file {name}"), *digest);
    }
    locks
}
