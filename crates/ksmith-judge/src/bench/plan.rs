//! What is to be measured, and the constants of the rule.

use serde::{Deserialize, Serialize};

/// The workloads and arms of one scoring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The workloads to time.
    pub workloads: Vec<Workload>,
    /// Whether the baseline runs as an arm of its own. False in the first round, where it is the champion.
    pub baseline: BaselineArm,
    /// Whether the flag control runs as an arm of its own.
    pub flag_control: FlagControlArm,
    /// The rule's constants.
    pub settings: Settings,
}

/// Where the figures over the baseline come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineArm {
    /// The champion is the baseline: its arm serves both.
    IsChampion,
    /// An arm of its own.
    Own,
}

/// Where the figures over the flag control come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlagControlArm {
    /// There is none yet, or the candidate is it.
    Absent,
    /// The champion is the flag control.
    IsChampion,
    /// The flag control has the baseline's bytes.
    IsBaseline,
    /// An arm of its own.
    Own,
}

/// One workload and the distributions its inputs are drawn from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name in the task (hidden neighbours get a name of the judge's).
    pub name: String,
    /// Its weight in the gain; above zero.
    pub weight: f64,
    /// What the timed inputs are drawn from; never empty.
    pub distributions: Vec<Distribution>,
}

/// One kind of input of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Its name in the judge's own records.
    pub name: String,
    /// How many cases the pool of one stage holds.
    pub cases: u32,
}

/// The constants of the rule; `docs/statistics.md` says where each comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Least gain that may be claimed (0.01 = 1 %); a task may lower it to 0.005.
    pub floor: f64,
    /// The gain for which the number of pairs is planned.
    pub target_gain: f64,
    /// Chance that a stage misses a kernel of the target gain, for which the number of pairs is planned.
    pub miss: f64,
    /// Total error probability of the decision stage.
    pub alpha: f64,
    /// Which confirmation of the run this would be, from 1: its error probability falls with it.
    pub confirmation: u32,
    /// Rounds in one process set; fewer where the pool is smaller.
    pub rounds_per_set: u32,
    /// Least number of process sets in a stage; never under 5.
    pub min_sets: u32,
    /// Least number of pairs in a stage.
    pub min_pairs: u32,
    /// Time limit of one stage, in seconds.
    pub stage_seconds: f64,
    /// Limit of the wait for a quiet moment before a stage, in seconds.
    pub quiet_seconds: f64,
    /// Aim for the length of a lane, in nanoseconds.
    pub lane_ns: u64,
    /// Most calls in one lane.
    pub lane_calls: u32,
    /// Widest half-width of an A/A interval with which a statement is made.
    pub noise_limit: f64,
    /// Least share of calls that must have run unpreempted.
    pub unpreempted: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            floor: 0.01,
            target_gain: 0.03,
            miss: 0.02,
            alpha: 0.01,
            confirmation: 1,
            rounds_per_set: 12,
            min_sets: 10,
            min_pairs: 60,
            stage_seconds: 10.0,
            quiet_seconds: 10.0,
            lane_ns: 1_000_000,
            lane_calls: 8,
            noise_limit: 0.015,
            unpreempted: 0.5,
        }
    }
}

impl Settings {
    /// Calls of one lane of a kernel that takes `call_ns`, without the warm-up call.
    pub fn calls(&self, call_ns: u64) -> u32 {
        let fit = self.lane_ns / call_ns.max(1);
        u32::try_from(fit)
            .unwrap_or(u32::MAX)
            .clamp(1, self.lane_calls.max(1))
    }

    /// Cases that one distribution needs so that a process set is never cut short.
    pub fn cases_needed(&self, call_ns: u64, distributions: u32) -> u32 {
        let rounds = self.rounds_per_set.div_ceil(distributions.max(1));
        rounds * (self.calls(call_ns) + 1) + CALIBRATION_CALLS
    }
}

/// Calls of each arm at the start of a set, before the first lane: pages, caches, and the length of a call.
pub(crate) const CALIBRATION_CALLS: u32 = 4;
