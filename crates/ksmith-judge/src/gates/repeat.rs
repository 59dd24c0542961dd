//! Gate `repeat`: the same inputs in other processes, at another placement and under another schedule, give the same
//! result.
//!
//! Three processes. The first runs as always. The second gives way to others on one CPU only, where threads cannot run at
//! the same time and take turns. The third may use every CPU, the judge's too. Where the task allows threads, threads of
//! the helper compete inside both, in bursts that delay the start of the candidate's threads. What depends on who comes
//! first differs between the three; what does not, is equal in every bit.

use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_task::Backend;
use ksmith_task::contract::Repeat;
use ksmith_worker::cpu::{Edge, Wait, allowed_cpus};
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::runner::{Setup, WorkerOptions, patience};
use crate::cases::{Case, bind, dev_fills};
use crate::codes::code;
use crate::judge::JudgeError;

/// Hidden and tiny cases that are shown again.
const SHOWN: (usize, usize) = (4, 2);
/// Fresh cases where threads may race.
const RACES: u64 = 6;
/// The dev shape for them is the largest up to this storage: long enough for threads to meet.
const RACE_BYTES: u64 = 1 << 20;
/// Threads of our own that compete inside a perturbed box.
const RIVALS: u32 = 2;
/// How far a perturbed worker gives way: about a quarter of a CPU beside one busy process.
const NICE: i32 = 5;
/// A perturbed call may take so many times longer than others.
const PATIENCE: u32 = 10;

/// A schedule other than the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    OneCpu,
    EveryCpu,
}

impl Schedule {
    fn options(self, usual: &WorkerOptions) -> WorkerOptions {
        let cpus = allowed_cpus();
        let cpus = match self {
            Self::OneCpu => cpus.last().copied().into_iter().collect(),
            Self::EveryCpu => cpus,
        };
        let nice = if self == Self::OneCpu { NICE } else { 0 };
        WorkerOptions {
            cpus,
            nice,
            rivals: RIVALS,
            // A worker that shares the judge's CPU must sleep while it waits.
            wait: Wait::Hybrid,
            ..usual.clone()
        }
    }
}

pub(crate) fn repeat(scoring: &mut Scoring<'_>) -> GateEnd {
    let bitwise = scoring.instance.task().contract().correctness.repeat == Repeat::Bitwise;
    let mut cases = scoring.hidden.clone();
    cases.truncate(SHOWN.0);
    cases.extend(scoring.tiny.iter().take(SHOWN.1).cloned());
    let threads = scoring.worker.threads > 1 && scoring.backend == Backend::Cpu;
    if threads {
        cases.extend(races(scoring)?);
    }
    let mut first = step!(scoring.start(Gate::Repeat));
    let mut outputs = Vec::new();
    for case in &cases {
        let setup = Setup::new(&case.spec.bound);
        outputs.push(
            step!(scoring.try_case(Gate::Repeat, &mut first, case, setup))
                .0
                .outputs,
        );
    }
    drop(first);
    // On a device the host's schedule decides nothing: one further process.
    let schedules: &[Schedule] = match scoring.backend {
        Backend::Cpu => &[Schedule::OneCpu, Schedule::EveryCpu],
        Backend::Cuda => &[Schedule::EveryCpu],
    };
    for schedule in schedules {
        let options = schedule.options(scoring.worker);
        let mut other = step!(scoring.start_with(Gate::Repeat, &options));
        // Opposite order: what one call leaves behind must not matter.
        for (case, before) in cases.iter().zip(&outputs).rev() {
            let setup = Setup::new(&case.spec.bound)
                .edge(Edge::Start)
                .deadline(PATIENCE * patience(&case.spec.bound));
            let (answer, _) = step!(scoring.try_case(Gate::Repeat, &mut other, case, setup));
            if bitwise && answer.outputs != *before {
                let class = if threads {
                    "schedule or address"
                } else {
                    "address or order of calls"
                };
                return Ok(End::Fail(
                    code(Gate::Repeat, "differs"),
                    json!({ "class": class }),
                ));
            }
        }
    }
    let rule = if bitwise { "bitwise" } else { "tolerance" };
    Ok(End::Pass(json!({
        "cases": cases.len(),
        "rule": rule,
        "processes": 1 + schedules.len(),
        "rivals": if threads { RIVALS } else { 0 },
    })))
}

/// Fresh cases at a dev shape at which threads meet.
fn races(scoring: &mut Scoring<'_>) -> Result<Vec<Arc<Case>>, JudgeError> {
    let plan = scoring.plan();
    let bounds = scoring
        .instance
        .workloads(scoring.backend)
        .map(|workload| bind(scoring.instance, &workload.name, &workload.axes))
        .collect::<Result<Vec<_>, _>>()?;
    // Beyond the limit the smallest one: its key is inverted.
    let suits = |bytes: u64| {
        if bytes <= RACE_BYTES {
            (1, bytes)
        } else {
            (0, u64::MAX - bytes)
        }
    };
    let Some(bound) = bounds
        .into_iter()
        .max_by_key(|bound| suits(bound.storage_bytes()))
    else {
        return Ok(Vec::new());
    };
    (0..RACES)
        .map(|number| {
            let spec = plan.case(&bound, dev_fills(&bound), "races", number);
            Ok(Arc::new(scoring.oracle.case(&spec)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ksmith_box::Level;

    #[test]
    fn perturbed_schedules_differ_from_the_usual_one_in_cpus_and_waits() {
        let usual = WorkerOptions {
            threads: 2,
            cpus: Vec::new(),
            nice: 0,
            rivals: 0,
            wait: Wait::Spin,
            least: Level::Limits,
            unsandboxed: false,
            device: None,
        };
        let one = Schedule::OneCpu.options(&usual);
        assert_eq!((one.cpus.len(), one.nice, one.wait), (1, NICE, Wait::Hybrid));
        let every = Schedule::EveryCpu.options(&usual);
        assert_eq!(every.cpus, allowed_cpus());
        assert!(one.rivals > 0 && every.rivals > 0);
    }
}
