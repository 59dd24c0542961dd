//! Begins runs: one per dtype instance, in turn, each with a ledger of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ksmith_ledger::{Ledger, ObjectStore};
use ksmith_machine::Machine;
use ksmith_task::{Backend, Instance, Task};

use crate::contract_review;
use crate::guard::{Guard, judge_digest};
use crate::judgement::Judgement;
use crate::opening::{Opening, opening};
use crate::outcome::InstanceOutcome;
use crate::session::{Session, Sitting};
use crate::workshop::{BuiltIn, Setting, Workshop};
use crate::{Budget, Event, Mechanism, Memory, Progress, RunError, RunOptions, RunOutcome, Stage, TypePick};

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
    let (mut cost_usd, mut tokens, mut device_s) = (0.0, 0, 0.0);
    let mut outcomes = Vec::new();
    for (index, instance) in instances.iter().enumerate() {
        let whole = budget(instance, options);
        let left = Budget {
            wall_s: (whole.wall_s - began.elapsed().as_secs_f64()).max(0.0),
            candidates: whole.candidates.saturating_sub(scored),
            cost_usd: (whole.cost_usd - cost_usd).max(0.0),
            tokens: whole.tokens.map(|whole| whole.saturating_sub(tokens)),
            device_s: whole.device_s.map(|whole| (whole - device_s).max(0.0)),
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
        device_s += outcome.device_s;
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
        device_s: match options.backend {
            Backend::Cuda => options
                .device_s
                .or(contract.device.map(|device| device.as_secs_f64())),
            Backend::Cpu => None,
        },
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
        &setting,
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
        task_argument: crate::relative_to(&options.home, &options.task)
            .display()
            .to_string(),
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
