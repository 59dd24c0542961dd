//! `candidate.toml` as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::cuda::{FillMode, Swizzle};
use crate::DType;
use crate::contract::Backend;
use crate::document::{At, Formula, TextOr};

/// A candidate: sources and how they become a program.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Kernelsmith candidate", rename = "Candidate")]
pub(crate) struct CandidateDocument {
    /// Version of the format: 1.
    pub(crate) schema: At<i64>,
    /// `cpu` or `cuda`.
    pub(crate) backend: At<Backend>,
    /// Source files, relative to the folder.
    pub(crate) sources: At<Vec<At<String>>>,
    /// CPU: the exported C symbol.
    pub(crate) entry: Option<At<String>>,
    /// Compiler flags from the allow-list.
    #[serde(default)]
    pub(crate) flags: Vec<At<String>>,
    /// CPU: libraries to link; each must stand in the task's policy, `m` always may.
    #[serde(default)]
    pub(crate) libraries: Vec<At<String>>,
    /// CUDA: `nvrtc` (default) or `nvcc`.
    pub(crate) compiler: Option<At<String>>,
    /// CUDA: `native` (default) or `sm_..`.
    pub(crate) arch: Option<At<String>>,
    /// CUDA: header libraries; each must stand in the task's policy.
    #[serde(default)]
    pub(crate) headers: Vec<At<String>>,
    /// CUDA: scratch memory.
    #[serde(default)]
    pub(crate) workspace: Vec<At<WorkspaceDocument>>,
    /// CUDA: tensor maps.
    #[serde(default)]
    pub(crate) tensormap: Vec<At<TensorMapDocument>>,
    /// CUDA: steps run once for static inputs.
    #[serde(default)]
    pub(crate) setup: Vec<At<StepDocument>>,
    /// CUDA: lists of steps; the first whose condition holds is used.
    #[serde(default)]
    pub(crate) variant: Vec<At<VariantDocument>>,
}

/// Scratch memory, poisoned before each call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Workspace")]
pub(crate) struct WorkspaceDocument {
    /// Name.
    pub(crate) name: At<String>,
    /// Size in bytes.
    pub(crate) bytes: Formula,
}

/// A tensor map.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TensorMap")]
pub(crate) struct TensorMapDocument {
    /// Name.
    pub(crate) name: At<String>,
    /// The tensor or workspace it describes.
    pub(crate) tensor: At<String>,
    /// Element type; default that of the tensor, needed for a workspace.
    pub(crate) dtype: Option<DType>,
    /// Sizes in elements, innermost first.
    pub(crate) dims: At<Vec<Formula>>,
    /// Strides in bytes, without the innermost.
    pub(crate) strides: At<Vec<Formula>>,
    /// Box in elements, innermost first.
    #[serde(rename = "box")]
    pub(crate) box_dims: At<Vec<Formula>>,
    /// Element strides; default all 1.
    pub(crate) element_strides: Option<At<Vec<Formula>>>,
    /// Swizzle; default `none`.
    pub(crate) swizzle: Option<Swizzle>,
    /// Value of elements out of bounds; default `zero`.
    pub(crate) fill: Option<FillMode>,
}

/// A list of steps and when it applies.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Variant")]
pub(crate) struct VariantDocument {
    /// Condition; the last variant has none.
    pub(crate) when: Option<At<String>>,
    /// Steps in order.
    pub(crate) step: At<Vec<At<StepDocument>>>,
}

/// A launch or a memset.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub(crate) struct StepDocument {
    /// Memset: workspace or output.
    pub(crate) memset: Option<At<String>>,
    /// Memset: the byte; default 0.
    pub(crate) value: Option<At<u8>>,
    /// Memset: how many bytes; default all.
    pub(crate) bytes: Option<Formula>,
    /// Launch: C++ name expression.
    pub(crate) kernel: Option<At<String>>,
    /// Launch: grid.
    pub(crate) grid: Option<At<Vec<Formula>>>,
    /// Launch: block.
    pub(crate) block: Option<At<Vec<Formula>>>,
    /// Launch: cluster; default none.
    pub(crate) cluster: Option<At<Vec<Formula>>>,
    /// Launch: dynamic shared memory in bytes; default 0.
    pub(crate) shared: Option<Formula>,
    /// Launch: whether all blocks run at the same time; default false.
    pub(crate) cooperative: Option<bool>,
    /// Launch: whether it may start before the previous step ends; default false.
    pub(crate) pdl: Option<At<bool>>,
    /// Launch: arguments, by name or as a typed value such as `{ i32 = "cols" }`.
    pub(crate) args: Option<Vec<At<TextOr<ValueDocument>>>>,
}

/// A typed scalar; exactly one key.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LaunchValue")]
pub(crate) struct ValueDocument {
    /// 32-bit integer.
    pub(crate) i32: Option<Formula>,
    /// 32-bit unsigned integer.
    pub(crate) u32: Option<Formula>,
    /// 64-bit integer.
    pub(crate) i64: Option<Formula>,
    /// 64-bit unsigned integer.
    pub(crate) u64: Option<Formula>,
    /// 32-bit float.
    pub(crate) f32: Option<Formula>,
    /// 64-bit float.
    pub(crate) f64: Option<Formula>,
}
