//! Raw samples as they go to the ledger, in the order in which they were taken.

use ksmith_machine::DeviceSample;
use serde::{Deserialize, Serialize};

use super::{Load, Role, Stage};

/// Everything that one stage measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Which stage.
    pub stage: Stage,
    /// The load when it began.
    pub load: Load,
    /// Seconds it took, the wait for a quiet moment not counted.
    pub seconds: f64,
    /// Calls of one lane, by workload.
    pub lane_calls: Vec<u32>,
    /// The process sets in order.
    pub sets: Vec<SetRecord>,
}

/// One process set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetRecord {
    /// Its number within the stage.
    pub set: u32,
    /// Order in which the workers were started.
    pub started: Vec<Role>,
    /// The lanes in order of time.
    pub lanes: Vec<LaneRecord>,
    /// What the independent clocks said, by arm.
    pub clocks: Vec<ArmClocks>,
    /// Clocks, temperature, power and throttle reasons of the timed device before the first lane and after the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<DeviceSample>,
}

/// One lane: a warm-up call, then the timed ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneRecord {
    /// Who ran.
    pub role: Role,
    /// Index of the workload.
    pub workload: u32,
    /// Index of the distribution within the workload.
    pub distribution: u32,
    /// Round within the set; all arms of a round and workload get the same cases.
    pub round: u32,
    /// The first case, that of the warm-up call; the timed calls take the ones after it.
    pub first_case: u32,
    /// Time of the warm-up call in nanoseconds. Never judged.
    pub warmup_ns: u64,
    /// Times of the calls in nanoseconds.
    pub ns: Vec<u64>,
    /// Bit `i` is set where call `i` was preempted on either side.
    pub preempted: u32,
}

impl LaneRecord {
    /// Times of the calls during which neither side was preempted.
    pub fn unpreempted(&self) -> impl Iterator<Item = u64> + '_ {
        self.ns
            .iter()
            .enumerate()
            .filter(|(at, _)| self.preempted >> at & 1 == 0)
            .map(|(_, ns)| *ns)
    }
}

/// One arm's totals over a process set, by clocks that do not depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ArmClocks {
    /// Who ran.
    pub role: Role,
    /// Sum of all calls by the clock that times them, in nanoseconds.
    pub timed_ns: u64,
    /// Time between wake and park by the host's clock, in nanoseconds.
    pub awake_ns: u64,
    /// CPU time of the process group, in nanoseconds, where the system tells.
    pub cpu_ns: Option<u64>,
}
