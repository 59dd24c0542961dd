//! The launch plan of a CUDA candidate: declarative, no host code.

use serde::{Deserialize, Serialize};

use crate::DType;
use crate::expr::Expr;

/// Device code and a launch plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CudaPlan {
    /// `nvrtc` or `nvcc`.
    pub compiler: String,
    /// `native` or `sm_..`.
    pub arch: String,
    /// Compiler flags, all on the allow-list.
    pub flags: Vec<String>,
    /// Header libraries; each must stand in the policy.
    pub headers: Vec<String>,
    /// Scratch memory, poisoned before each call.
    pub workspaces: Vec<Workspace>,
    /// Tensor maps built by the judge.
    pub tensormaps: Vec<TensorMap>,
    /// Steps run once for static inputs.
    pub setup: Vec<Step>,
    /// The first whose condition holds is used; the last has none.
    pub variants: Vec<Variant>,
}

impl CudaPlan {
    /// Every step: those of the setup, then those of each variant.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.setup
            .iter()
            .chain(self.variants.iter().flat_map(|variant| &variant.steps))
    }

    /// Name expressions of the kernels that the plan launches anywhere, each once, in order of first launch.
    pub fn kernels(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for step in self.steps() {
            if let Step::Kernel(kernel) = step
                && !names.contains(&kernel.name)
            {
                names.push(kernel.name.clone());
            }
        }
        names
    }
}

/// Scratch memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workspace {
    /// Name.
    pub name: String,
    /// Size in bytes.
    pub bytes: Expr,
}

/// A tensor map for bulk tensor copies.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorMap {
    /// Name.
    pub name: String,
    /// The tensor or workspace it describes.
    pub tensor: String,
    /// Element type; default that of the tensor.
    pub dtype: Option<DType>,
    /// Sizes in elements, innermost first.
    pub dims: Vec<Expr>,
    /// Strides in bytes, without the innermost.
    pub strides: Vec<Expr>,
    /// Box in elements, innermost first.
    pub box_dims: Vec<Expr>,
    /// Element strides; default all 1.
    pub element_strides: Vec<Expr>,
    /// Swizzle of the shared-memory layout.
    pub swizzle: Swizzle,
    /// Value of elements out of bounds.
    pub fill: FillMode,
}

/// Swizzle of a tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Swizzle {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "32B")]
    B32,
    #[serde(rename = "64B")]
    B64,
    #[serde(rename = "128B")]
    B128,
}

/// Value of elements out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FillMode {
    /// Zero.
    Zero,
    /// NaN.
    Nan,
}

/// A list of steps and when it applies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variant {
    /// Condition; the last variant has none.
    pub when: Option<Expr>,
    /// Steps in order, in one stream.
    pub steps: Vec<Step>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Sets bytes of a workspace or output.
    Memset(Memset),
    /// Launches a kernel.
    Kernel(Box<Kernel>),
}

/// Sets bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memset {
    /// Workspace or output.
    pub target: String,
    /// The byte.
    pub value: u8,
    /// How many bytes; default all.
    pub bytes: Option<Expr>,
}

/// A launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Kernel {
    /// C++ name expression of the kernel.
    pub name: String,
    /// Grid: one to three sizes.
    pub grid: Vec<Expr>,
    /// Block: one to three sizes.
    pub block: Vec<Expr>,
    /// Cluster: none, or one to three sizes.
    pub cluster: Vec<Expr>,
    /// Dynamic shared memory in bytes.
    pub shared: Option<Expr>,
    /// Whether all blocks run at the same time.
    pub cooperative: bool,
    /// Whether it may start before the previous step ends.
    pub pdl: bool,
    /// Arguments in order.
    pub args: Vec<Argument>,
}

/// Scalar types that a launch can pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DataType {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// An argument of a launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Argument {
    /// A tensor, workspace, tensor map, scalar or axis by name.
    Name(String),
    /// A computed scalar.
    Value(DataType, Expr),
}
