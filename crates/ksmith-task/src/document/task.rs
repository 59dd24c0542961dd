//! The top level of `task.toml`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    At, ByteCount, DTypes, Formula, InputDocument, Ordered, OutputDocument, PerBackend, ScalarDocument,
    TextOr,
};
use crate::DType;
use crate::contract::{Backend, Lane, NonFinite, PeerKind, Phase, Repeat, Stop};

/// A task: the contract between the person who states a goal, the writers and the judge.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Kernelsmith task", rename = "Task")]
pub(crate) struct TaskDocument {
    /// Version of the format: 1.
    pub(crate) schema: At<i64>,
    /// Name of the task: letters, digits, `-` and `_`.
    pub(crate) name: At<String>,
    /// Family that supplies defaults; `custom` if absent.
    pub(crate) family: Option<At<String>>,
    /// Dtype variables: a list each, or a table from backend to a list.
    #[serde(default)]
    pub(crate) types: Ordered<At<DTypes>>,
    /// Axes, in the order of the candidate's arguments.
    pub(crate) axes: At<Ordered<At<AxisDocument>>>,
    /// Conditions over axes that every shape satisfies.
    #[serde(default)]
    pub(crate) constraints: Vec<At<String>>,
    /// Input tensors, in the order of the candidate's arguments.
    #[serde(default)]
    pub(crate) inputs: Vec<At<InputDocument>>,
    /// Scalar arguments.
    #[serde(default)]
    pub(crate) scalars: Vec<At<ScalarDocument>>,
    /// Output tensors, in the order of the candidate's arguments.
    pub(crate) outputs: At<Vec<At<OutputDocument>>>,
    /// The float64 oracle.
    pub(crate) reference: At<TextOr<ReferenceDocument>>,
    /// Program that writes coupled inputs (those with `fill = "generator"`).
    pub(crate) generator: Option<At<TextOr<GeneratorDocument>>>,
    /// What the judge draws in secret.
    #[serde(default)]
    pub(crate) hidden: HiddenDocument,
    /// Unavoidable work: the physical floor.
    #[serde(default)]
    pub(crate) cost: CostDocument,
    /// Dev workloads.
    pub(crate) workloads: At<Vec<At<WorkloadDocument>>>,
    /// Candidate folder per backend: what the user runs today.
    pub(crate) baseline: At<BaselineDocument>,
    /// Library entries measured in the same run.
    #[serde(default)]
    pub(crate) peers: Vec<At<TextOr<PeerDocument>>>,
    /// Candidate folders that enter the search.
    #[serde(default)]
    pub(crate) seeds: Vec<At<String>>,
    /// Goal and protocol.
    pub(crate) performance: At<PerformanceDocument>,
    /// What counts as correct beside the tolerance.
    #[serde(default)]
    pub(crate) correctness: CorrectnessDocument,
    /// Hard stops of a run.
    #[serde(default)]
    pub(crate) budget: BudgetDocument,
    /// What a candidate may use.
    #[serde(default)]
    pub(crate) policy: PolicyDocument,
    /// Pins of tools, such as `cuda = "13.*"`.
    #[serde(default)]
    pub(crate) environment: Ordered<At<String>>,
}

/// The sizes an axis may take: a range, a list, or an expression.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Axis")]
pub(crate) struct AxisDocument {
    /// Least size; default 1.
    pub(crate) min: Option<At<i64>>,
    /// Greatest size.
    pub(crate) max: Option<At<i64>>,
    /// Every size is a multiple of this; default 1.
    pub(crate) multiple_of: Option<At<i64>>,
    /// The sizes, if they are few.
    pub(crate) values: Option<At<Vec<At<i64>>>>,
    /// An expression over other axes.
    pub(crate) expr: Option<At<String>>,
}

/// The float64 oracle.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reference")]
pub(crate) struct ReferenceDocument {
    /// A `.c`, `.py` or `.cu` file.
    pub(crate) source: At<String>,
    /// Symbol or function; default `reference`.
    pub(crate) entry: Option<At<String>>,
    /// Threads it may use; default 1.
    pub(crate) threads: Option<At<u32>>,
    /// Folder with the same in float64 device code and its launch plan, for large shapes.
    pub(crate) cuda: Option<At<String>>,
}

/// A program that writes coupled inputs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Generator")]
pub(crate) struct GeneratorDocument {
    /// A `.c` or `.py` file.
    pub(crate) source: At<String>,
    /// Symbol or function; default `generate`.
    pub(crate) entry: Option<At<String>>,
}

/// What the judge draws in secret.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Hidden")]
pub(crate) struct HiddenDocument {
    /// Hidden cases of one scoring; default 8.
    pub(crate) cases: Option<At<u32>>,
    /// Random shapes among them; default 6.
    pub(crate) shapes: Option<At<u32>>,
    /// Fills for all float inputs, or tables of fills by input.
    pub(crate) distributions: Option<Vec<At<TextOr<DistributionDocument>>>>,
    /// Pressure probes.
    pub(crate) probes: Option<Vec<At<ProbeDocument>>>,
    /// Recorded tensors.
    pub(crate) traces: Option<Vec<At<TraceDocument>>>,
    /// Bytes over one scoring's random shapes; default 64MiB.
    pub(crate) max_bytes: Option<At<ByteCount>>,
    /// Operations over one scoring's random shapes; default 2e9.
    pub(crate) max_flops: Option<At<f64>>,
    /// Predicted time of one scoring above which lint refuses; default 20s.
    pub(crate) scoring_limit: Option<At<String>>,
}

/// Fills by input.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Distribution")]
pub(crate) struct DistributionDocument {
    /// Name, shown to people only.
    pub(crate) name: At<String>,
    /// Fill by input name.
    pub(crate) fill: Ordered<At<String>>,
}

/// A pressure probe.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Probe")]
pub(crate) struct ProbeDocument {
    /// Name, shown to people only.
    pub(crate) name: At<String>,
    /// Fill by input name.
    #[serde(default)]
    pub(crate) fill: Ordered<At<String>>,
    /// Fixed axes.
    #[serde(default)]
    pub(crate) axes: Ordered<At<i64>>,
}

/// Recorded tensors.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trace")]
pub(crate) struct TraceDocument {
    /// A safetensors file.
    pub(crate) file: At<String>,
    /// Input name to tensor name in the file.
    #[serde(default)]
    pub(crate) map: Ordered<At<String>>,
    /// The axes of the recording.
    pub(crate) axes: At<Ordered<At<i64>>>,
}

/// Unavoidable work.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cost")]
pub(crate) struct CostDocument {
    /// Bytes that must move; default the size of all tensors.
    pub(crate) bytes: Option<Formula>,
    /// Floating-point operations that must happen.
    pub(crate) flops: Option<Formula>,
}

/// A visible binding of the axes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Workload")]
pub(crate) struct WorkloadDocument {
    /// Name.
    pub(crate) name: At<String>,
    /// Sizes of all axes that are not expressions.
    pub(crate) axes: At<Ordered<At<i64>>>,
    /// Weight in the headline; default 1.
    pub(crate) weight: Option<At<f64>>,
    /// Backends it applies to; default all.
    pub(crate) backends: Option<Vec<At<Backend>>>,
    /// Kind of use.
    pub(crate) phase: Option<Phase>,
}

/// Candidate folder per backend.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Baseline")]
pub(crate) struct BaselineDocument {
    /// Folder of the CPU baseline.
    pub(crate) cpu: Option<At<String>>,
    /// Folder of the CUDA baseline.
    pub(crate) cuda: Option<At<String>>,
}

/// A library entry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Peer")]
pub(crate) struct PeerDocument {
    /// Name in reports.
    pub(crate) name: At<String>,
    /// What it is.
    pub(crate) kind: At<PeerKind>,
    /// File or folder.
    pub(crate) source: Option<At<String>>,
}

/// Goal and protocol.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Performance")]
pub(crate) struct PerformanceDocument {
    /// Time ratio to the baseline that counts as success: a number, or one per backend.
    pub(crate) goal: At<PerBackend>,
    /// When the run stops; default `budget`.
    pub(crate) stop: Option<Stop>,
    /// Slowdown allowed per workload; default 0.02.
    pub(crate) max_regression: Option<At<f64>>,
    /// Smallest gain that may be claimed; default 0.01, at least 0.005.
    pub(crate) min_gain: Option<At<f64>>,
    /// A named preset; `course` if neither it nor numbers are given.
    pub(crate) protocol: Option<At<String>>,
    /// Calls before timing starts.
    pub(crate) warmup: Option<At<u32>>,
    /// Timed calls.
    pub(crate) repeats: Option<At<u32>>,
    /// Repetitions of the whole.
    pub(crate) rounds: Option<At<u32>>,
    /// Whether speed may depend on values; default false.
    pub(crate) data_dependent: Option<bool>,
    /// How calls are timed; default `single`.
    pub(crate) lane: Option<Lane>,
}

/// What counts as correct beside the tolerance.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Correctness")]
pub(crate) struct CorrectnessDocument {
    /// Treatment of infinities and NaN; default `forbid`.
    pub(crate) nonfinite: Option<NonFinite>,
    /// What two calls have in common; default `bitwise`, `tolerance` in some families.
    pub(crate) repeat: Option<Repeat>,
}

/// Hard stops of a run.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Budget")]
pub(crate) struct BudgetDocument {
    /// Wall-clock time such as `20m` or `1h30m`; default 20m.
    pub(crate) wall: Option<At<String>>,
    /// Full scorings; default 60.
    pub(crate) candidates: Option<At<u32>>,
    /// Money; default 5.
    pub(crate) cost_usd: Option<At<f64>>,
    /// Model tokens; default no limit.
    pub(crate) tokens: Option<At<u64>>,
    /// GPU time; default no limit.
    pub(crate) device: Option<At<String>>,
    /// Price of an hour of GPU time.
    pub(crate) device_usd_per_hour: Option<At<f64>>,
}

/// What a candidate may use.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Policy")]
pub(crate) struct PolicyDocument {
    /// `c`, `c++`, `cuda`, `ptx`; default all of the backend.
    pub(crate) languages: Option<Vec<At<String>>>,
    /// Threads of a CPU candidate; default CPUs − 1.
    pub(crate) threads: Option<At<u32>>,
    /// Libraries a candidate may include or link.
    pub(crate) libraries: Option<Vec<At<String>>>,
    /// Least internal precision.
    pub(crate) compute: Option<Vec<At<DType>>>,
    /// Least isolation level: `box`, `kernel`, `limits` or `none`.
    pub(crate) isolation: Option<At<String>>,
}
