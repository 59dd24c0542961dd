//! What a writer is given and what it leaves. Every writer, built in or external, shares these.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Instance;
use crate::contract::{AxisValues, Backend, Budget};

/// Everything a writer may know for one proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Brief {
    /// Instance, such as `softmax[T=bf16]`.
    pub instance: String,
    /// The task's family.
    pub family: String,
    /// The task's folder; readable, never writable.
    pub task: PathBuf,
    /// The target.
    pub backend: Backend,
    /// The C header of the entry symbol.
    pub header: String,
    /// The visible workloads.
    pub workloads: Vec<BriefWorkload>,
    /// Time ratio to the baseline that counts as success.
    pub goal: f64,
    /// Threads a CPU candidate may use.
    pub threads: u32,
    /// The best accepted candidate so far (at first the baseline); a copy, readable.
    pub champion: PathBuf,
    /// What was tried, oldest first.
    pub history: Vec<Outcome>,
    /// What is left to spend.
    pub left: BudgetLeft,
    /// The direction to work on, if the plan names one.
    pub direction: Option<String>,
    /// What the planner, profiler or reviewer has to say, as plain text.
    pub notes: Vec<String>,
    /// Seed of every random choice of the writer.
    pub seed: u64,
    /// Where to leave the candidate: an empty folder.
    pub out: PathBuf,
}

impl Brief {
    /// The brief of a run that has tried nothing: the baseline is champion and the task's whole budget is left.
    ///
    /// The champion is an empty path where the task names no baseline for `backend`; a candidate has one thread unless
    /// the policy says otherwise.
    pub fn opening(
        instance: &Instance,
        backend: Backend,
        direction: Option<&str>,
        seed: u64,
        out: &Path,
    ) -> Self {
        let task = instance.task();
        let contract = task.contract();
        let baseline = contract.baseline.get(&backend);
        Self {
            instance: instance.id(),
            family: contract.family.clone(),
            task: task.dir().to_owned(),
            backend,
            header: crate::abi::header(instance),
            workloads: BriefWorkload::all(instance, backend),
            goal: contract.performance.goal.on(backend),
            threads: contract.policy.threads.unwrap_or(1),
            champion: baseline.map(|folder| task.dir().join(folder)).unwrap_or_default(),
            history: Vec::new(),
            left: BudgetLeft::whole(&contract.budget),
            direction: direction.map(str::to_owned),
            notes: Vec::new(),
            seed,
            out: out.to_owned(),
        }
    }
}

/// A visible workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BriefWorkload {
    /// Name.
    pub name: String,
    /// Sizes.
    pub axes: AxisValues,
    /// Weight in the headline.
    pub weight: f64,
}

impl BriefWorkload {
    /// The dev workloads of an instance that apply to `backend`.
    pub fn all(instance: &Instance, backend: Backend) -> Vec<Self> {
        instance
            .workloads(backend)
            .map(|workload| Self {
                name: workload.name.clone(),
                axes: workload.axes.clone(),
                weight: workload.weight,
            })
            .collect()
    }
}

/// One earlier candidate of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Outcome {
    /// Candidate id.
    pub candidate: String,
    /// What it tried.
    pub hypothesis: String,
    /// The direction it belonged to.
    pub direction: String,
    /// Gain over the champion that was predicted, as a ratio of times.
    pub predicted: Option<f64>,
    /// `accept`, `revise`, `reject`, `ambiguous` or `error`.
    pub verdict: String,
    /// Stable `gate/cause` string.
    pub code: String,
    /// Gain over the champion that was measured, as a ratio of times.
    pub measured: Option<f64>,
    /// Evidence a writer may see, as plain text.
    pub evidence: String,
}

/// What is left to spend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BudgetLeft {
    /// Seconds of wall-clock time.
    pub wall_s: f64,
    /// Full scorings.
    pub candidates: u32,
    /// Money.
    pub cost_usd: f64,
    /// Model tokens, if limited.
    pub tokens: Option<u64>,
}

impl BudgetLeft {
    /// All of a budget.
    fn whole(budget: &Budget) -> Self {
        Self {
            wall_s: budget.wall.as_secs_f64(),
            candidates: budget.candidates,
            cost_usd: budget.cost_usd,
            tokens: budget.tokens,
        }
    }
}

/// A candidate folder with the idea behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Proposal {
    /// The candidate folder.
    pub folder: PathBuf,
    /// The one idea, in a sentence.
    pub hypothesis: String,
    /// Predicted gain over the champion as a ratio of times; above 1 is faster.
    pub predicted_gain: Option<f64>,
    /// The direction it belongs to.
    pub direction: String,
    /// Id of the candidate it started from.
    pub parent: Option<String>,
}
