//! Goal, correctness, policy and pins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Backend;
use crate::DType;

/// When a run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// On plateau or spent budget.
    Budget,
    /// As soon as the goal is confirmed.
    Goal,
}

/// How calls are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// One challenged call at a time.
    Single,
    /// Several inputs revealed together, for kernels under 200 µs on CPU.
    Batched,
}

/// Least numbers of timed calls per arm in a confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Protocol {
    /// Name of the preset, or `custom`.
    pub name: String,
    /// Calls before timing starts.
    pub warmup: u32,
    /// Timed calls.
    pub repeats: u32,
    /// Repetitions of the whole.
    pub rounds: u32,
}

impl Protocol {
    /// The named presets.
    pub const PRESETS: [(&'static str, u32, u32, u32); 2] = [("course", 5, 30, 1), ("kda-v0.5", 3, 50, 3)];

    /// The preset called `name`.
    pub fn preset(name: &str) -> Option<Self> {
        let (name, warmup, repeats, rounds) = Self::PRESETS.into_iter().find(|preset| preset.0 == name)?;
        Some(Self {
            name: name.to_owned(),
            warmup,
            repeats,
            rounds,
        })
    }
}

/// Time ratio to the baseline that counts as success, by backend: baselines of different backends leave different room.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goals {
    /// On the CPU.
    pub cpu: f64,
    /// On a CUDA device.
    pub cuda: f64,
}

impl Goals {
    /// The goal of one backend.
    pub fn on(self, backend: Backend) -> f64 {
        match backend {
            Backend::Cpu => self.cpu,
            Backend::Cuda => self.cuda,
        }
    }
}

impl std::fmt::Display for Goals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.cpu == self.cuda {
            write!(f, "{}", self.cpu)
        } else {
            write!(f, "{} (cpu) and {} (cuda)", self.cpu, self.cuda)
        }
    }
}

/// Goal and protocol.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Performance {
    /// Time ratio to the baseline that counts as success.
    pub goal: Goals,
    /// When the run stops.
    pub stop: Stop,
    /// Slowdown allowed per workload.
    pub max_regression: f64,
    /// Smallest gain that may be claimed; 0.01 unless lowered to 0.005.
    pub min_gain: f64,
    /// Least numbers of timed calls.
    pub protocol: Protocol,
    /// Whether speed may depend on values.
    pub data_dependent: bool,
    /// How calls are timed.
    pub lane: Lane,
}

/// Treatment of infinities and NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NonFinite {
    /// Never drawn, never allowed in outputs.
    Forbid,
    /// Outputs are non-finite exactly where the reference rounded to the dtype is.
    Match,
}

/// What two calls on the same input must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    /// Every bit.
    Bitwise,
    /// Both pass the tolerance.
    Tolerance,
}

/// What counts as correct beside the tolerance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Correctness {
    /// Treatment of infinities and NaN.
    pub nonfinite: NonFinite,
    /// What two calls must have in common.
    pub repeat: Repeat,
}

/// What a candidate may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Policy {
    /// Languages: `c`, `c++`, `cuda`, `ptx`; empty means all of the backend.
    pub languages: Vec<String>,
    /// Threads of a CPU candidate; `None` means CPUs − 1.
    pub threads: Option<u32>,
    /// Libraries a candidate may include or link.
    pub libraries: Vec<String>,
    /// Least internal precision; empty means unrestricted.
    pub compute: Vec<DType>,
    /// Least isolation level; `None` means the strongest the machine has.
    pub isolation: Option<String>,
}

/// Pins of tools by name, such as `cuda = "13.*"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Environment(pub BTreeMap<String, String>);
