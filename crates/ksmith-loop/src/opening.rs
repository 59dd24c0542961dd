//! The first record of a run: what is locked, what was asked for and what was found, so that `resume` and
//! `verify --replay` need nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ksmith_ledger::{BlobRef, BudgetLimits, HEADER_LOCK, ObjectStore, RunOpened, Scope};
use ksmith_machine::Machine;
use ksmith_task::{Backend, Digest, Instance, Lock};
use serde::{Deserialize, Serialize};

use crate::contract_review::ContractReview;
use crate::guard::Guard;
use crate::{Budget, ReviewOptions, RunError, RunOptions, Sandbox, WriterChoice};

/// What `run-opened` keeps beyond its named fields, so that `resume` and `verify --replay` need nothing else.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The task's folder as seen from where the run was begun; `resume` looks there.
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
    /// The C header of the symbol.
    #[serde(default)]
    pub(crate) header: Option<BlobRef>,
    /// Instances of the same command that come after this one.
    pub(crate) remaining: Vec<String>,
}

/// What the first record is made from.
pub(crate) struct Opening<'a> {
    pub(crate) id: &'a str,
    pub(crate) instance: &'a Instance,
    pub(crate) rest: &'a [Instance],
    pub(crate) budget: Budget,
    pub(crate) options: &'a RunOptions,
    pub(crate) machine: &'a Machine,
    pub(crate) guard: &'a Guard,
    pub(crate) baseline: &'a Path,
    pub(crate) writer: String,
    pub(crate) reviewer: Option<String>,
    pub(crate) contract_review: Option<&'a ContractReview>,
    pub(crate) commitments: Vec<ksmith_ledger::SeedCommitment>,
    pub(crate) objects: &'a ObjectStore,
}

/// The first record. What it names lies in the object store then.
pub(crate) fn opening(opening: Opening<'_>) -> Result<RunOpened, RunError> {
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
    let header = objects.put(ksmith_task::abi::header(instance).as_bytes())?;
    locks.insert(HEADER_LOCK.to_owned(), header.blob);
    let scope = match options.backend {
        Backend::Cpu => Scope::Cpu,
        Backend::Cuda => Scope::Cuda,
    };
    let kept = Kept {
        task_path: crate::relative_to(&options.home, task.dir()),
        task_tree,
        backend: options.backend,
        writer: options.writer.clone(),
        agents: options.agents.clone(),
        review: options.review.clone(),
        contract_review,
        header: Some(header),
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
        goal: contract.performance.goal.on(options.backend),
        mechanisms: options.mechanisms.switches(),
        writer: opening.writer,
        reviewer: opening.reviewer,
        budget: BudgetLimits {
            wall_s: Some(opening.budget.wall_s).filter(|wall| wall.is_finite()),
            candidates: Some(opening.budget.candidates),
            cost_usd: Some(opening.budget.cost_usd),
            tokens: opening.budget.tokens,
            device_s: opening.budget.device_s,
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
