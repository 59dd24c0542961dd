//! Independent clocks: what the timing clock says, against wall time and the CPU time of the whole process group.
//!
//! Catches a timing clock that was tampered with (the sum of calls cannot exceed the time between wake and park) and
//! work on threads that the task does not allow. It cannot see small cheating: the CPU clock may tick in 4 ms, so
//! only totals of a second and more are looked at.

use serde::{Deserialize, Serialize};

use super::{ArmClocks, Role, SetRecord, StageRecord};

/// Least total of wall time for which the CPU clock is asked.
const LEAST_NS: u64 = 1_000_000_000;

/// Part by which clocks of different make may differ over such a total: ticks at start and end of each set, rounding.
const TOLERANCE: f64 = 0.05;

/// The largest tick of a CPU clock that was met, in nanoseconds; each set may be off by one at either end.
const TICK_NS: u64 = 4_000_000;

/// What the clocks of one arm say of each other over a stage or two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clocks {
    /// They agree.
    Agree {
        /// CPU time over time awake.
        cpu_share: f64,
    },
    /// Not enough was measured, or the system does not tell CPU times.
    Unavailable {
        /// Which of the two.
        why: String,
    },
    /// The calls sum to more than the time in which the worker could run.
    MoreThanWall {
        /// Sum of calls over time awake.
        share: f64,
    },
    /// The group used more CPUs than it may.
    MoreCpus {
        /// CPU time over time awake.
        cpu_share: f64,
    },
}

/// Adds up one arm's clocks over all sets of `records` and compares them.
pub fn clocks<'a>(records: impl IntoIterator<Item = &'a StageRecord>, role: Role, threads: u32) -> Clocks {
    let sets = records.into_iter().flat_map(|record| &record.sets);
    let of = |set: &'a SetRecord| set.clocks.iter().find(|clocks| clocks.role == role).copied();
    compare(&sets.filter_map(of).collect::<Vec<_>>(), threads)
}

fn compare(sets: &[ArmClocks], threads: u32) -> Clocks {
    let total = |of: fn(&ArmClocks) -> u64| sets.iter().map(of).fold(0, u64::saturating_add);
    let (timed, awake) = (total(|clocks| clocks.timed_ns), total(|clocks| clocks.awake_ns));
    let share = timed as f64 / awake.max(1) as f64;
    if awake > 0 && share > 1.0 + TOLERANCE {
        return Clocks::MoreThanWall { share };
    }
    let known: Vec<&ArmClocks> = sets.iter().filter(|clocks| clocks.cpu_ns.is_some()).collect();
    if known.is_empty() {
        return Clocks::Unavailable {
            why: "the system does not tell CPU times".to_owned(),
        };
    }
    let awake: u64 = known
        .iter()
        .map(|clocks| clocks.awake_ns)
        .fold(0, u64::saturating_add);
    if awake < LEAST_NS {
        let why = format!(
            "{} ms awake in all, {} needed",
            awake / 1_000_000,
            LEAST_NS / 1_000_000
        );
        return Clocks::Unavailable { why };
    }
    let cpu: u64 = known
        .iter()
        .filter_map(|clocks| clocks.cpu_ns)
        .fold(0, u64::saturating_add);
    let cpu_share = cpu as f64 / awake as f64;
    let slack = TICK_NS as f64 * 2.0 * known.len() as f64 / awake as f64;
    if cpu_share > f64::from(threads) * (1.0 + TOLERANCE) + slack {
        Clocks::MoreCpus { cpu_share }
    } else {
        Clocks::Agree { cpu_share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(timed_ns: u64, awake_ns: u64, cpu_ns: Option<u64>) -> Vec<ArmClocks> {
        vec![
            ArmClocks {
                role: Role::Candidate,
                timed_ns,
                awake_ns,
                cpu_ns
            };
            20
        ]
    }

    #[test]
    fn a_worker_that_spins_on_one_cpu_agrees() {
        let found = compare(&sets(40_000_000, 100_000_000, Some(98_000_000)), 1);
        assert!(matches!(found, Clocks::Agree { .. }), "{found:?}");
    }

    #[test]
    fn hidden_threads_use_more_cpus_than_allowed() {
        let two = sets(40_000_000, 100_000_000, Some(190_000_000));
        assert!(matches!(compare(&two, 1), Clocks::MoreCpus { .. }));
        assert!(matches!(compare(&two, 2), Clocks::Agree { .. }));
    }

    #[test]
    fn a_clock_that_runs_ahead_of_wall_time_is_found() {
        assert!(matches!(
            compare(&sets(120_000_000, 100_000_000, None), 1),
            Clocks::MoreThanWall { .. }
        ));
    }

    #[test]
    fn short_totals_and_silent_systems_say_unavailable() {
        assert!(matches!(
            compare(&sets(1_000_000, 4_000_000, Some(9_000_000)), 1),
            Clocks::Unavailable { .. }
        ));
        assert!(matches!(
            compare(&sets(40_000_000, 100_000_000, None), 1),
            Clocks::Unavailable { .. }
        ));
        assert!(matches!(compare(&[], 1), Clocks::Unavailable { .. }));
    }
}
