//! The contract as the rest of the program sees it: expanded, validated, without spans.

mod budget;
mod policy;
mod tensor;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::expr::Expr;
use crate::{DType, Fill};

pub use budget::Budget;
pub use policy::{
    Correctness, Environment, Goals, Lane, NonFinite, Performance, Policy, Protocol, Repeat, Stop,
};
pub use tensor::{Compare, Domain, Input, Output, Overflow, Scalar, ScalarSource, TypeName};

/// A whole contract. Relative paths are relative to the task's folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Contract {
    /// Version of the format: 1.
    pub schema: u32,
    /// The task's name.
    pub name: String,
    /// The family that supplied the defaults.
    pub family: String,
    /// Dtype variables, in the task's order.
    pub types: Vec<TypeVariable>,
    /// Axes, in the task's order; the order of the candidate's `int64_t` arguments.
    pub axes: Vec<Axis>,
    /// Conditions that every shape satisfies.
    pub constraints: Vec<Expr>,
    /// Input tensors, in the task's order.
    pub inputs: Vec<Input>,
    /// Scalar arguments, in the task's order.
    pub scalars: Vec<Scalar>,
    /// Output tensors, in the task's order.
    pub outputs: Vec<Output>,
    /// The float64 oracle.
    pub reference: Reference,
    /// Program that writes coupled inputs.
    pub generator: Option<Generator>,
    /// What the judge draws in secret.
    pub hidden: Hidden,
    /// Unavoidable work.
    pub cost: Cost,
    /// Dev workloads.
    pub workloads: Vec<Workload>,
    /// Candidate folder per backend: what the user runs today.
    pub baseline: BTreeMap<Backend, PathBuf>,
    /// Library entries measured in the same run.
    pub peers: Vec<Peer>,
    /// Other implementations that enter the search.
    pub seeds: Vec<PathBuf>,
    /// Goal and protocol.
    pub performance: Performance,
    /// What counts as correct beside the tolerance.
    pub correctness: Correctness,
    /// Hard stops of a run.
    pub budget: Budget,
    /// What a candidate may use.
    pub policy: Policy,
    /// Pins of tools, compared by a replay.
    pub environment: Environment,
}

/// A backend that a candidate is written for.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// C or C++ on the host.
    Cpu,
    /// CUDA on an NVIDIA GPU.
    Cuda,
}

impl Backend {
    /// The name used in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

/// A dtype variable and the dtypes it ranges over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeVariable {
    /// Name, such as `T`.
    pub name: String,
    /// Its dtypes, in the task's order.
    pub dtypes: Vec<DType>,
    /// The dtypes of each backend, where the task tells backends apart; empty means all of them everywhere.
    pub backends: BTreeMap<Backend, Vec<DType>>,
}

impl TypeVariable {
    /// Its dtypes on `backend`.
    pub fn on(&self, backend: Backend) -> &[DType] {
        if self.backends.is_empty() {
            return &self.dtypes;
        }
        self.backends.get(&backend).map_or(&[], Vec::as_slice)
    }
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Name, used by expressions and as the C parameter.
    pub name: String,
    /// The sizes it may take.
    pub kind: AxisKind,
}

/// The sizes an axis may take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisKind {
    /// All multiples in a range.
    Range {
        /// Least size.
        min: i64,
        /// Greatest size.
        max: i64,
        /// Every size is a multiple of this.
        multiple_of: i64,
    },
    /// One of a list.
    Values(Vec<i64>),
    /// Follows from other axes.
    Expr(Expr),
}

/// The float64 oracle. Argument order of a C reference: see `abi::reference_header`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// `.c`, `.py` or `.cu` file.
    pub source: PathBuf,
    /// Symbol or function called; default `reference`.
    pub entry: String,
    /// Threads it may use; default 1.
    pub threads: u32,
    /// Folder with the same reference as device code, in the form of a candidate; used for large shapes of backend
    /// `cuda`, after it has agreed with `source` at small ones.
    pub cuda: Option<PathBuf>,
}

/// A program that writes inputs which depend on each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Generator {
    /// `.c` or `.py` file.
    pub source: PathBuf,
    /// Symbol or function called; default `generate`.
    pub entry: String,
}

/// What the judge draws in secret.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hidden {
    /// Hidden cases of one scoring.
    pub cases: u32,
    /// Random shapes among them.
    pub shapes: u32,
    /// Named input distributions, paired with the shapes.
    pub distributions: Vec<Distribution>,
    /// Pressure probes.
    pub probes: Vec<Probe>,
    /// Recorded tensors.
    pub traces: Vec<Trace>,
    /// Upper bound of bytes over one scoring's random shapes.
    pub max_bytes: u64,
    /// Upper bound of floating-point operations over one scoring's random shapes.
    pub max_flops: f64,
    /// Upper bound of the predicted seconds of one scoring.
    pub scoring_limit_s: f64,
}

/// A named distribution: fills by input name, the others keep theirs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// Name, shown to people only.
    pub name: String,
    /// Fill by input name.
    pub fills: BTreeMap<String, Fill<Expr>>,
}

/// A probe: chosen fills at a chosen or drawn shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Name, shown to people only.
    pub name: String,
    /// Fill by input name; the others keep theirs.
    pub fills: BTreeMap<String, Fill<Expr>>,
    /// Axes that are fixed; the others are drawn small.
    pub axes: BTreeMap<String, i64>,
}

/// Recorded tensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// A safetensors file.
    pub file: PathBuf,
    /// Input name to tensor name in the file; the others have equal names.
    pub map: BTreeMap<String, String>,
    /// The axes of the recording.
    pub axes: BTreeMap<String, i64>,
}

/// Unavoidable work as expressions: the physical floor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Bytes that must move; default: the extents of all tensors.
    pub bytes: Option<Expr>,
    /// Floating-point operations that must happen.
    pub flops: Option<Expr>,
}

/// A visible binding of the axes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// Name.
    pub name: String,
    /// Sizes, in the task's order of axes; derived axes are filled in.
    pub axes: AxisValues,
    /// Weight in the headline; default 1.
    pub weight: f64,
    /// Backends it applies to; empty means all.
    pub backends: Vec<Backend>,
    /// Kind of use.
    pub phase: Option<Phase>,
}

impl Workload {
    /// Whether the workload applies to `backend`.
    pub fn applies_to(&self, backend: Backend) -> bool {
        self.backends.is_empty() || self.backends.contains(&backend)
    }
}

/// Sizes by axis name.
pub type AxisValues = BTreeMap<String, i64>;

/// Kind of use of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Many tokens at once.
    Prefill,
    /// One token at a time.
    Decode,
    /// Forward and backward.
    Train,
}

/// A library entry measured in the same run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// Name in reports.
    pub name: String,
    /// What it is.
    pub kind: PeerKind,
    /// File or folder, where the kind needs one.
    pub source: Option<PathBuf>,
}

/// What a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// The framework's own operator.
    Eager,
    /// The framework's compiler.
    Compile,
    /// A library entry.
    Library,
    /// Another candidate folder.
    Candidate,
}
