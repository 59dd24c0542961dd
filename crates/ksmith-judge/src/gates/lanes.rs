//! Gate `clocks` on a device: the worker's events are claims, and lanes of other kinds must not contradict them.
//!
//! Four lanes of candidate and champion on the same cases: *cold* (one call after the L2 was written over), *serial*
//! (several calls in one stream, by the judge's clock and by the events), *graph* (the same as one graph, each replay
//! with buffers of its own, all checked) and *call* (one call from order to answer by the judge's clock). The empty
//! launch is published beside them and never subtracted. What contradicts is looked at again, in new processes: a
//! process that the host happens to serve slowly is no finding, and what a kernel hides it hides every time.

use std::time::Duration;

use ksmith_ledger::Gate;
use ksmith_task::{Backend, Instance, chain};
use ksmith_worker::cuda::{Cache, Launch, NOTHING, ResolvedPlan, ResolvedStep};
use serde_json::{Value, json};

use super::context::{Built, End, GateEnd, blamed};
use super::measure::{Timed, shown};
use super::runner::{Runner, RunnerError, Setup, WorkerOptions};
use crate::bench::Report;
use crate::cases::{Case, Plan, Secret, dev_fills};
use crate::codes::code;
use crate::device::Device;
use crate::judge::JudgeError;
use crate::reference::{Checkers, Oracle};

/// Cases of one lane.
const TOGETHER: usize = 4;
/// Times that each lane is run; the least counts.
const ROUNDS: usize = 6;
/// Looks that must agree on a contradiction.
const LOOKS: usize = 2;
/// Workloads that are looked at, those of the task first.
const WORKLOADS: usize = 2;
/// The judge's clock may show so much more per call than the events claim, as a share of the claim…
const CLAIM: f64 = 0.25;
/// …and in nanoseconds, for launches that the host cannot queue fast enough.
const CLAIM_NS: f64 = 5_000.0;
/// Time around the events of a cold call may exceed the champion's by so much, in nanoseconds and as a share of a call.
const AROUND_NS: f64 = 25_000.0;
const AROUND: f64 = 0.15;
/// A graph lane that is slower than the champion's by more than this contradicts a gain from cold caches.
const DISAGREE: f64 = 0.02;

/// What the lanes of one arm showed, in nanoseconds per call.
#[derive(Debug, Clone, Copy, serde::Serialize)]
struct Figures {
    cold_event: f64,
    cold_around: f64,
    serial_judge: f64,
    serial_event: f64,
    graph_event: f64,
    call_judge: f64,
}

/// What is looked at, and with what.
pub(crate) struct Lanes<'j> {
    pub(crate) instance: &'j Instance,
    pub(crate) secret: Secret,
    pub(crate) timed: &'j [Timed],
    pub(crate) report: &'j Report,
    pub(crate) candidate: &'j Built,
    pub(crate) champion: &'j Built,
    pub(crate) worker: &'j WorkerOptions,
    pub(crate) device: &'j Device,
}

pub(crate) fn lanes(looked: &Lanes<'_>, oracle: &mut Oracle) -> GateEnd {
    let plan = Plan::hidden(looked.instance, &looked.secret).on(Backend::Cuda);
    let mut found = Vec::new();
    for (index, timed) in looked.timed.iter().enumerate().take(WORKLOADS) {
        let specs: Vec<_> = (0..TOGETHER as u64)
            .map(|number| {
                plan.case(
                    &timed.bound,
                    dev_fills(&timed.bound),
                    &format!("lanes {index}"),
                    number,
                )
            })
            .collect();
        let cases = shown(oracle, looked.worker, &specs, None)?;
        let _lock = looked.device.lock()?;
        let limit = super::measure::deadline(timed.champion_ns * TOGETHER as u64);
        let checkers = oracle.checkers();
        let (gain, floor) = claimed(looked.report, index);
        let mut against = None;
        let mut figures = None;
        for _ in 0..LOOKS {
            let candidate = match arm(looked.candidate, looked.worker, &cases, limit, &checkers) {
                Ok(Ok(figures)) => figures,
                Ok(Err(cause)) => return Ok(End::Fail(code(Gate::Clocks, cause), json!({ "class": cause }))),
                Err(error) => return blamed(Gate::Clocks, error),
            };
            let champion = arm(looked.champion, looked.worker, &cases, limit, &checkers)
                .map_err(|error| JudgeError::Worker(chain(&error)))?
                .map_err(|cause| JudgeError::Worker(format!("the champion in the lanes: {cause}")))?;
            against = contradicted(gain, floor, &candidate, &champion);
            figures = Some((candidate, champion));
            if against.is_none() {
                break;
            }
        }
        let Some((candidate, champion)) = figures else {
            continue;
        };
        if let Some(cause) = against {
            let evidence = json!({ "candidate": candidate, "champion": champion, "looks": LOOKS });
            return Ok(End::Fail(code(Gate::Clocks, cause), evidence));
        }
        found.push(json!({ "workload": timed.name, "candidate": candidate, "champion": champion }));
    }
    let empty = empty(looked.device).map_err(|error| JudgeError::Worker(chain(&error)))?;
    Ok(End::Pass(json!({ "lanes_ns": found, "empty_launch_ns": empty })))
}

/// Claimed gain (lower bound, log-ratio) and floor of one workload.
fn claimed(report: &Report, workload: usize) -> (f64, f64) {
    let stage = report.last();
    let gain = stage
        .over_champion
        .as_ref()
        .and_then(|comparison| {
            comparison
                .workloads
                .iter()
                .find(|part| part.workload as usize == workload)
        })
        .map_or(f64::NEG_INFINITY, |part| part.interval.lower);
    (gain, stage.floor.unwrap_or(f64::INFINITY))
}

/// What no honest kernel shows, as the cause of a code.
fn contradicted(gain: f64, floor: f64, candidate: &Figures, champion: &Figures) -> Option<&'static str> {
    let around = champion.cold_around + AROUND_NS.max(AROUND * champion.cold_event);
    if candidate.serial_judge > candidate.serial_event * (1.0 + CLAIM) + CLAIM_NS
        || candidate.cold_around > around
    {
        return Some("claims");
    }
    let slower = candidate.graph_event > champion.graph_event * (1.0 + DISAGREE);
    (gain > floor && slower).then_some("lanes-disagree")
}

/// Runs every lane of one arm; the inner error is the cause of a wrong answer.
fn arm(
    built: &Built,
    worker: &WorkerOptions,
    cases: &[Case],
    limit: Duration,
    checkers: &Checkers,
) -> Result<Result<Figures, &'static str>, RunnerError> {
    let mut runner = Runner::start(built, worker)?;
    if let Some(device) = &worker.device {
        device.settle();
    }
    let Some(remote) = runner.remote() else {
        return Err(RunnerError::Ours("lanes are for devices".to_owned()));
    };
    let slots: Vec<usize> = (0..cases.len()).collect();
    let setup = |case: &Case| Setup::new(&case.spec.bound);
    for (slot, case) in slots.iter().zip(cases) {
        remote.fill_slot(*slot, case, setup(case))?;
    }
    let infinite = Figures {
        cold_event: f64::INFINITY,
        cold_around: f64::INFINITY,
        serial_judge: f64::INFINITY,
        serial_event: f64::INFINITY,
        graph_event: f64::INFINITY,
        call_judge: f64::INFINITY,
    };
    let mut least = infinite;
    let (mut one, mut all) = ((f64::INFINITY, f64::INFINITY), (f64::INFINITY, f64::INFINITY));
    for round in 0..ROUNDS {
        for graph in [false, true] {
            for (slot, case) in slots.iter().zip(cases) {
                remote.refill_slot(*slot, case, setup(case))?;
            }
            let timing = remote.lane(&slots, graph, limit)?;
            for (slot, case) in slots.iter().zip(cases) {
                if let Some(cause) = remote.verify_slot(*slot, case, checkers)? {
                    return Ok(Err(cause));
                }
            }
            if graph {
                least.graph_event = least.graph_event.min(timing.event_ns as f64 / slots.len() as f64);
            } else {
                all = (
                    all.0.min(timing.judge_ns as f64),
                    all.1.min(timing.event_ns as f64),
                );
            }
        }
        let place = round % cases.len();
        let case = &cases[place];
        remote.refill_slot(place, case, setup(case))?;
        let single = remote.lane(&[place], false, limit)?;
        one = (
            one.0.min(single.judge_ns as f64),
            one.1.min(single.event_ns as f64),
        );
        least.call_judge = least.call_judge.min(single.judge_ns as f64);
        remote.refill_slot(place, case, setup(case))?;
        let cold = remote.cold(limit)?;
        if let Some(cause) = remote.verify_slot(place, case, checkers)? {
            return Ok(Err(cause));
        }
        least.cold_event = least.cold_event.min(cold.event_ns as f64);
        least.cold_around = least
            .cold_around
            .min(cold.judge_ns.saturating_sub(cold.event_ns) as f64);
    }
    let more = (slots.len() - 1).max(1) as f64;
    least.serial_judge = (all.0 - one.0) / more;
    least.serial_event = (all.1 - one.1) / more;
    Ok(Ok(least))
}

/// The empty launch in the same lanes.
fn empty(device: &Device) -> Result<Value, RunnerError> {
    let mut worker = device.worker()?;
    let kernels = [NOTHING.to_owned()];
    worker.load(device.checks.cubin(), &kernels)?;
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
        kernels: kernels.to_vec(),
        workspaces: Vec::new(),
        setup: Vec::new(),
        steps: vec![ResolvedStep::Launch {
            launch,
            params: Vec::new(),
        }],
    };
    worker.slot(0, &[], &plan)?;
    let limit = Duration::from_secs(2);
    let (mut cold, mut graph, mut call) = (u64::MAX, u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        cold = cold.min(worker.call(&device.owner, 0, Cache::Cold, limit)?.event_ns);
        call = call.min(worker.call(&device.owner, 0, Cache::AsIs, limit)?.judge_ns);
        let slots = [0; 16];
        graph = graph.min(worker.batch(&device.owner, &slots, true, limit)?.event_ns / slots.len() as u64);
    }
    Ok(json!({ "cold_event": cold, "graph_event": graph, "call_judge": call }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(graph: f64, serial_judge: f64) -> Figures {
        Figures {
            cold_event: 100_000.0,
            cold_around: 60_000.0,
            serial_judge,
            serial_event: 95_000.0,
            graph_event: graph,
            call_judge: 130_000.0,
        }
    }

    #[test]
    fn events_that_claim_less_than_the_judges_clock_shows_are_found() {
        let honest = figures(95_000.0, 97_000.0);
        let cause = |candidate: &Figures, gain: f64| contradicted(gain, 0.01, candidate, &honest);
        assert_eq!(cause(&honest, 0.1), None);
        assert_eq!(cause(&figures(95_000.0, 160_000.0), 0.1), Some("claims"));
        let around = Figures {
            cold_around: 120_000.0,
            ..honest
        };
        assert_eq!(cause(&around, 0.1), Some("claims"));
    }

    #[test]
    fn a_gain_from_cold_caches_with_a_loss_in_the_graph_lane_is_a_finding() {
        let honest = figures(95_000.0, 97_000.0);
        let slower = figures(99_000.0, 97_000.0);
        assert_eq!(contradicted(0.1, 0.01, &slower, &honest), Some("lanes-disagree"));
        // Without a claimed gain there is nothing to contradict.
        assert_eq!(contradicted(-0.1, 0.01, &slower, &honest), None);
    }
}
