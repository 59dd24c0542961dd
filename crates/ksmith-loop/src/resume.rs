//! Goes on with a run where its last record stands.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ksmith_ledger::{Ledger, ObjectStore, Resumed, RunOpened, read_records};
use ksmith_task::{Instance, Lock, Task};
use serde::Deserialize;

use crate::guard::{Guard, judge_digest};
use crate::judgement::Judgement;
use crate::opening::Kept;
use crate::outcome::InstanceOutcome;
use crate::run::{absolute, baseline_folder, finish, run_instances};
use crate::session::Session;
use crate::workshop::{BuiltIn, Setting, Workshop};
use crate::{
    AgentHost, Event, Interrupt, Mechanism, Mechanisms, Memory, Progress, RunError, RunOptions, RunOutcome,
    Sandbox,
};

/// What going on needs beside the record.
#[derive(Debug, Clone)]
pub struct ResumeOptions {
    /// The run's folder.
    pub run: PathBuf,
    /// Where `.ksmith/` lies, for instances that have not begun.
    pub home: PathBuf,
    /// What of the machine agents may use.
    pub agent_host: AgentHost,
    /// Set by a signal handler.
    pub interrupt: Interrupt,
    /// The command line, for the first record of instances that have not begun.
    pub command: Vec<String>,
    /// The key that signs certificates; absent means unsigned.
    pub signing_key: Option<PathBuf>,
}

/// Goes on with a run, then with the instances of the same command that have not begun.
///
/// A closed run only gets its files written anew.
///
/// # Errors
/// When the record is damaged, something locked was edited, or the run cannot go on.
pub fn resume(options: &ResumeOptions, progress: &mut dyn Progress) -> Result<RunOutcome, RunError> {
    resume_with(options, &BuiltIn, progress)
}

/// [`resume`] with other judges and writers.
///
/// # Errors
/// As [`resume`].
pub fn resume_with(
    options: &ResumeOptions,
    workshop: &dyn Workshop,
    progress: &mut dyn Progress,
) -> Result<RunOutcome, RunError> {
    // Boxes show absolute paths only.
    let options = &ResumeOptions {
        run: absolute(&options.run),
        ..options.clone()
    };
    let memory = remember(&options.run)?;
    let begun = Begun::read(options, &memory)?;
    if memory.closed.is_some() {
        crate::steps::write_files(&options.run, options.signing_key.as_deref())?;
        return Ok(RunOutcome {
            instances: vec![InstanceOutcome::read(&options.run, memory.spent.wall_s)?],
        });
    }
    // The task is locked, so within this run nothing can be corrected.
    if let Some(audit) = memory.audit.as_ref().filter(|audit| !audit.passed) {
        return Err(RunError::Audit {
            findings: audit.findings.clone(),
        });
    }
    let task = Task::load(options.home.join(&begun.kept.task_path))?;
    let first = begun.go_on(&task, workshop, progress)?;
    let stopped = first.outcome == ksmith_ledger::Outcome::Interrupted;
    let mut instances = vec![first];
    let remaining = &begun.kept.remaining;
    if !stopped && !remaining.is_empty() {
        let rest = remaining
            .iter()
            .map(|id| instance_of(&task, id))
            .collect::<Result<Vec<_>, _>>()?;
        instances.extend(run_instances(&rest, &begun.rest(rest.len()), workshop, progress)?.instances);
    }
    Ok(RunOutcome { instances })
}

/// A run that began, as its first record says.
struct Begun<'a> {
    options: &'a ResumeOptions,
    opened: RunOpened,
    kept: Kept,
}

impl<'a> Begun<'a> {
    fn read(options: &'a ResumeOptions, memory: &Memory) -> Result<Self, RunError> {
        let opened = memory.opened.clone().ok_or_else(|| RunError::Record {
            run: options.run.clone(),
            source: crate::memory::MemoryError::NotARun("nothing"),
        })?;
        let kept = Kept::deserialize(&opened.options).map_err(|error| {
            RunError::Internal(format!("the first record's options cannot be read: {error}"))
        })?;
        Ok(Self {
            options,
            opened,
            kept,
        })
    }

    fn sandbox(&self) -> Sandbox {
        if self.opened.unsandboxed {
            Sandbox::Unsandboxed
        } else {
            Sandbox::Required
        }
    }

    fn mechanisms(&self) -> Mechanisms {
        Mechanisms::from_switches(&self.opened.mechanisms)
    }

    fn seed(&self) -> u64 {
        self.opened.search_seed.unwrap_or_default()
    }

    /// Takes the instance up where its last record stands, to its end.
    fn go_on(
        &self,
        task: &Task,
        workshop: &dyn Workshop,
        progress: &mut dyn Progress,
    ) -> Result<InstanceOutcome, RunError> {
        let Self {
            options,
            opened,
            kept,
        } = self;
        let instance = instance_of(task, &opened.instance)?;
        let mut ledger = Ledger::open(&options.run)?;
        // Opening may have set a half-written line aside, which is a record as well.
        let mut memory = remember(&options.run)?;
        let guard = Guard::resume(task, lock_of(&ledger, opened)?, judge_digest()?)?;
        let sandbox = self.sandbox();
        let arena = workshop.arena(&instance, kept.backend, &options.run, sandbox)?;
        let mechanisms = self.mechanisms();
        let cache = mechanisms
            .has(Mechanism::Cache)
            .then(|| crate::tuner::path(&options.home));
        let (recorder, wishes) = crate::recorder(ObjectStore::new(&options.run));
        let setting = Setting {
            instance: &instance,
            backend: kept.backend,
            run: &options.run,
            cache: cache.as_deref(),
            sandbox,
            agents: &kept.agents,
            host: &options.agent_host,
            account: crate::Account::of(&memory),
            recorder,
            interrupt: options.interrupt.clone(),
        };
        let writer = workshop.writer(&kept.writer, &setting)?;
        let judgement = Judgement::begin(workshop, &mechanisms, &kept.review, &kept.writer, &setting)?;
        resumed(&mut ledger, &mut memory, &options.run)?;
        progress.event(&Event::Started {
            run: &opened.run,
            instance: &opened.instance,
            budget: memory.budget(),
        });
        let mut session = Session {
            ledger,
            memory,
            baseline: baseline_folder(&instance, kept.backend)?,
            instance,
            backend: kept.backend,
            task_argument: kept.task_path.display().to_string(),
            guard,
            arena,
            writer,
            wishes,
            judgement,
            mechanisms,
            seed: self.seed(),
            interrupt: options.interrupt.clone(),
            progress,
            writer_is_exhausted: false,
            lessons: crate::lessons::read(&options.run),
            last_record: Instant::now(),
        };
        let signing_key = options.signing_key.as_deref();
        finish(&mut session, &options.run, signing_key, cache.as_deref())
    }

    /// Options for `count` instances that have not begun. Each gets what this one got: the command's whole budget is
    /// not recorded anywhere.
    fn rest(&self, count: usize) -> RunOptions {
        let Self {
            options,
            opened,
            kept,
        } = self;
        let parts = count as f64;
        RunOptions {
            task: options.home.join(&kept.task_path),
            home: options.home.clone(),
            backend: kept.backend,
            types: Vec::new(),
            wall_s: opened.budget.wall_s.map(|wall| wall * parts),
            candidates: opened.budget.candidates.map(|each| each * count as u64),
            cost_usd: opened.budget.cost_usd.map(|cost| cost * parts),
            tokens: opened.budget.tokens.map(|each| each * count as u64),
            device_s: opened.budget.device_s.map(|each| each * parts),
            seed: self.seed(),
            writer: kept.writer.clone(),
            mechanisms: self.mechanisms(),
            review: kept.review.clone(),
            sandbox: self.sandbox(),
            agents: kept.agents.clone(),
            agent_host: options.agent_host.clone(),
            interrupt: options.interrupt.clone(),
            command: options.command.clone(),
            signing_key: options.signing_key.clone(),
        }
    }
}

/// Records that the run goes on.
fn resumed(ledger: &mut Ledger, memory: &mut Memory, run: &Path) -> Result<(), RunError> {
    let resumed = Resumed {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        head: ledger.head(),
        redo: None,
    };
    let record = ledger.append(resumed.clone())?;
    let time = record.unix_seconds().unwrap_or_default();
    memory
        .apply(&resumed.into(), time)
        .map_err(|source| RunError::Record {
            run: run.to_owned(),
            source,
        })
}

fn instance_of(task: &Task, id: &str) -> Result<Instance, RunError> {
    task.instances()
        .into_iter()
        .find(|instance| instance.id() == id)
        .ok_or_else(|| RunError::Changed(vec![format!("instance `{id}` of the task")]))
}

/// Folds a run's records.
pub(crate) fn remember(run: &Path) -> Result<Memory, RunError> {
    let mut memory = Memory::default();
    for record in read_records(run)? {
        let seq = record.seq;
        let entry = record
            .entry()
            .map_err(|source| ksmith_ledger::ReadError::Body { seq, source })?;
        memory
            .apply(&entry, record.unix_seconds().unwrap_or_default())
            .map_err(|source| RunError::Record {
                run: run.to_owned(),
                source,
            })?;
    }
    Ok(memory)
}

fn lock_of(ledger: &Ledger, opened: &RunOpened) -> Result<Lock, RunError> {
    let blob = opened
        .lock_file
        .ok_or_else(|| RunError::Internal("the first record names no lock file".into()))?;
    let text = ledger.objects().get(blob.blob)?;
    serde_json::from_slice(&text)
        .map_err(|error| RunError::Internal(format!("the lock file cannot be read: {error}")))
}
