//! Resolves a declarative launch plan for one workload on one device.
//!
//! Everything that can be wrong with a plan is found here, with numbers, before anything runs: unknown names, wrong
//! sizes and counts of arguments, empty grids, blocks above 1024 threads, too much shared memory. Pure functions; no
//! device is needed.

mod occupancy;
mod resolve;
mod scalar;
mod tensor_map;

use ksmith_task::DType;
use serde::{Deserialize, Serialize};

pub use resolve::{KernelLookup, resolve};

/// Why a plan cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct PlanError {
    /// Which part: `workspace partial`, `step 2 (attend<128, true>), grid[0]`, …
    pub place: String,
    /// What is wrong, with the numbers.
    pub message: String,
}

fn fail<T>(place: impl Into<String>, message: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError {
        place: place.into(),
        message: message.into(),
    })
}

/// A tensor map without the address of its buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMapParam {
    /// Index of the buffer.
    pub buffer: usize,
    /// Element type.
    pub element: DType,
    /// Sizes in elements, innermost first.
    pub dims: Vec<u64>,
    /// Strides in bytes, without the innermost.
    pub strides: Vec<u64>,
    /// Box in elements.
    pub box_dims: Vec<u32>,
    /// Element strides.
    pub element_strides: Vec<u32>,
    /// 0, 32, 64 or 128.
    pub swizzle_bytes: u32,
    /// Whether elements out of bounds read as NaN instead of 0.
    pub nan_fill: bool,
}

/// One argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// The address of a buffer.
    Buffer(usize),
    /// A tensor map over a buffer.
    Map(TensorMapParam),
    /// The bytes of a scalar.
    Bytes(Vec<u8>),
}

impl Param {
    /// Size in bytes as the kernel sees it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Buffer(_) => 8,
            Self::Map(_) => 128,
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Geometry of one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Index of the kernel in [`ResolvedPlan::kernels`].
    pub kernel: usize,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// Whether all blocks run at once.
    pub cooperative: bool,
    /// Whether the launch may overlap the end of the step before.
    pub pdl: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedStep {
    /// Fills the first bytes of a buffer.
    Fill {
        /// Index of the buffer.
        buffer: usize,
        /// The byte.
        value: u8,
        /// How many.
        bytes: u64,
    },
    /// Launches a kernel.
    Launch {
        /// Geometry.
        launch: Launch,
        /// Arguments.
        params: Vec<Param>,
    },
}

/// A plan with every number known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// Name expressions of the kernels that are launched.
    pub kernels: Vec<String>,
    /// Name and size in bytes of each workspace; workspaces stand behind the task's tensors in buffer order.
    pub workspaces: Vec<(String, u64)>,
    /// Steps run once for static inputs.
    pub setup: Vec<ResolvedStep>,
    /// Steps of a call.
    pub steps: Vec<ResolvedStep>,
}

impl ResolvedPlan {
    /// The same plan for a worker that has loaded `kernels` in this order, and whose buffers lie where `place` says.
    pub fn relocated(mut self, kernels: &[String], place: &dyn Fn(usize) -> usize) -> Self {
        let numbers: Vec<usize> = self
            .kernels
            .iter()
            .map(|name| {
                let found = kernels.iter().position(|loaded| loaded == name);
                found.unwrap_or(usize::MAX)
            })
            .collect();
        for step in self.setup.iter_mut().chain(&mut self.steps) {
            match step {
                ResolvedStep::Fill { buffer, .. } => *buffer = place(*buffer),
                ResolvedStep::Launch { launch, params } => {
                    launch.kernel = numbers.get(launch.kernel).copied().unwrap_or(usize::MAX);
                    for param in params {
                        match param {
                            Param::Buffer(buffer) => *buffer = place(*buffer),
                            Param::Map(map) => map.buffer = place(map.buffer),
                            Param::Bytes(_) => {}
                        }
                    }
                }
            }
        }
        self.kernels = kernels.to_vec();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relocated_plan_names_kernels_and_buffers_of_its_worker() {
        let launch = Launch {
            kernel: 0,
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: None,
            shared: 0,
            cooperative: false,
            pdl: false,
        };
        let plan = ResolvedPlan {
            kernels: vec!["second".to_owned()],
            workspaces: Vec::new(),
            setup: Vec::new(),
            steps: vec![
                ResolvedStep::Fill {
                    buffer: 3,
                    value: 0,
                    bytes: 8,
                },
                ResolvedStep::Launch {
                    launch: launch.clone(),
                    params: vec![Param::Buffer(1), Param::Bytes(vec![7])],
                },
            ],
        };
        let loaded = ["first".to_owned(), "second".to_owned()];
        let moved = plan.relocated(&loaded, &|buffer| buffer + 10);
        assert_eq!(moved.kernels, loaded);
        assert_eq!(
            moved.steps,
            [
                ResolvedStep::Fill {
                    buffer: 13,
                    value: 0,
                    bytes: 8
                },
                ResolvedStep::Launch {
                    launch: Launch { kernel: 1, ..launch },
                    params: vec![Param::Buffer(11), Param::Bytes(vec![7])],
                },
            ]
        );
    }
}
