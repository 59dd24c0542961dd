//! The end of a corpus run: what one process set can say without statistics.

use std::time::Instant;

use ksmith_ledger::{Decision, Gate};

use super::Judge;
use super::timing;
use super::verdict::Protocol;
use crate::bench::{Finding, Report, Role, Settings};
use crate::codes::code;
use crate::gates::{Built, Timed};

/// One process set, no wait for a quiet machine: more calls of one worker than a counting cheat waits for.
pub(super) const SETTINGS: Settings = Settings {
    floor: 0.01,
    target_gain: 0.03,
    miss: 0.02,
    alpha: 0.01,
    confirmation: 1,
    rounds_per_set: 24,
    min_sets: 5,
    min_pairs: 60,
    stage_seconds: 0.0,
    quiet_seconds: 0.0,
    lane_ns: 8_000_000,
    lane_calls: 8,
    noise_limit: 0.015,
    unpreempted: 0.0,
};

/// Keeps the workload with the least storage, under two distributions.
pub(super) fn smallest(timed: &mut Vec<Timed>) {
    timed.sort_by_key(|timed| timed.bound.storage_bytes());
    timed.truncate(1);
    for timed in timed {
        timed.kinds = timed.kinds.min(2);
    }
}

impl Judge {
    /// Faults of the candidate in the bench, then `floor` and `clocks`; speed is not judged.
    pub(super) fn after_one_set(
        &mut self,
        built: &Built,
        report: &Report,
        timed: &[Timed],
        protocol: &mut Protocol,
        started: Instant,
    ) -> (Decision, String, Option<Gate>) {
        let fault = match &report.finding {
            Finding::Fault { role, .. } => {
                *role != Role::Candidate || !self.options.without.contains(&Gate::PostBench)
            }
            Finding::Broken { .. } => true,
            _ => false,
        };
        if fault {
            for said in timing::bench(report) {
                if let Some(end) = said.note(protocol, started) {
                    return end;
                }
            }
        }
        let measured = report
            .decision
            .record
            .sets
            .iter()
            .any(|set| !set.lanes.is_empty());
        if measured && let Some(end) = self.physics(built, report, timed, protocol) {
            return end;
        }
        (
            Decision::Revise,
            code(Gate::Gain, "not-measured"),
            Some(Gate::Gain),
        )
    }
}
