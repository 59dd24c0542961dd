//! How a judge works: where it keeps things, how strict its boxes are, how much it measures.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use ksmith_box::Level;
use ksmith_ledger::Gate;
use ksmith_task::Backend;

use crate::bench::Settings;

/// How much of a full pass runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Everything: all gates, decision, confirmation.
    Full,
    /// All correctness gates at small shapes, no timing: never accepts. For tests.
    Correctness,
    /// As `Correctness`, then the gates after the bench on one process set at small shapes, without statistics: never
    /// accepts. For corpora of cheats and honest kernels.
    Corpus,
}

/// How a judge works.
#[derive(Debug, Clone)]
pub struct JudgeOptions {
    /// Which tier runs the candidates.
    pub backend: Backend,
    /// Compiled references and libraries by digest; outside every box but read-only inside.
    pub cache: PathBuf,
    /// The run's secrets; made with mode 0600, outside every box.
    pub secrets: PathBuf,
    /// Least isolation of every box.
    pub least: Level,
    /// Whether the user allowed less by name; recorded in every verdict.
    pub unsandboxed: bool,
    /// Threads of a candidate; `None` follows the policy, else CPUs − 1.
    pub threads: Option<usize>,
    /// How much of a full pass runs.
    pub effort: Effort,
    /// The bench's constants; the confirmation's number is filled in by the judge.
    pub settings: Settings,
    /// Shared by judges of one process that work at the same time: correctness gates run beside each other, and whoever
    /// measures waits until it is alone. Workers then sleep while they wait, except while something is timed.
    pub turns: Option<Arc<RwLock<()>>>,
    /// Gates left out: for mutation tests of the judge only. With any, no verdict is ever `accept`.
    pub without: Vec<Gate>,
}

impl JudgeOptions {
    /// Usual options with everything of the judge's under `state`.
    pub fn new(state: &Path) -> Self {
        Self {
            backend: Backend::Cpu,
            cache: state.join("cache"),
            secrets: state.join("secrets"),
            least: Level::Kernel,
            unsandboxed: false,
            threads: None,
            effort: Effort::Full,
            settings: Settings::default(),
            turns: None,
            without: Vec::new(),
        }
    }

    /// The same for another tier, with the bench's constants that suit it.
    pub fn on(self, backend: Backend) -> Self {
        let settings = match backend {
            Backend::Cpu => self.settings,
            Backend::Cuda => DEVICE_SETTINGS,
        };
        Self {
            backend,
            settings,
            ..self
        }
    }
}

/// The bench's constants on a device. Times from cold caches scatter by tenths of a percent, and every case of a large
/// workload takes most of a second to draw and to expect: few rounds in a set, few calls in a lane, six sets. The rule
/// itself (bounds, A/A floor, two stages) is that of the CPU.
const DEVICE_SETTINGS: Settings = Settings {
    floor: 0.01,
    target_gain: 0.03,
    miss: 0.02,
    alpha: 0.01,
    confirmation: 1,
    rounds_per_set: 4,
    min_sets: 6,
    min_pairs: 24,
    stage_seconds: 20.0,
    quiet_seconds: 0.5,
    lane_ns: 1_000_000,
    lane_calls: 2,
    noise_limit: 0.015,
    unpreempted: 0.5,
};
