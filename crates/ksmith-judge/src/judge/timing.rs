//! What the bench's report means for the gates from `bench` to `regression`.

use std::collections::BTreeMap;
use std::time::Instant;

use ksmith_ledger::{Decision, Gate, GateOutcome};
use serde_json::{Value, json};

use super::verdict::Protocol;
use crate::bench::{Comparison, Finding, Part, Report, Role, StageReport};
use crate::codes::code;
use crate::statistics::{self, DataDependence, RegressionState};

/// A gate's end with the decision that follows from it.
pub(crate) struct Said {
    pub(crate) gate: Gate,
    pub(crate) outcome: GateOutcome,
    pub(crate) code: Option<String>,
    pub(crate) evidence: Value,
    pub(crate) decision: Option<Decision>,
}

impl Said {
    /// Adds it to the protocol; the first decision that is not "go on" ends the scoring.
    pub(super) fn note(
        self,
        protocol: &mut Protocol,
        started: Instant,
    ) -> Option<(Decision, String, Option<Gate>)> {
        let end = self
            .decision
            .map(|decision| (decision, self.code.clone().unwrap_or_default(), Some(self.gate)));
        protocol.add(self.gate, self.outcome, self.code, self.evidence, started);
        end
    }
}

fn pass(gate: Gate, evidence: Value) -> Said {
    Said {
        gate,
        outcome: GateOutcome::Pass,
        code: None,
        evidence,
        decision: None,
    }
}

fn stop(gate: Gate, outcome: GateOutcome, code: String, evidence: Value, decision: Decision) -> Said {
    Said {
        gate,
        outcome,
        code: Some(code),
        evidence,
        decision: Some(decision),
    }
}

/// Gates `bench` and `post-bench`.
pub(crate) fn bench(report: &Report) -> Vec<Said> {
    let stage = report.last();
    let evidence = json!({
        "stage": stage.stage,
        "load": stage.record.load,
        "seconds": stage.record.seconds,
        "sets": stage.record.sets.len(),
        "planned_pairs": stage.planned_pairs,
        "unpreempted": stage.unpreempted,
        "control": stage.control,
        "floor": stage.floor,
        "looks": stage.looks.len(),
    });
    match &report.finding {
        Finding::Fault {
            role,
            code,
            evidence: cause,
        } => {
            if *role == Role::Candidate {
                return vec![
                    pass(Gate::Bench, evidence),
                    stop(
                        Gate::PostBench,
                        GateOutcome::Fail,
                        code.clone(),
                        cause.clone(),
                        Decision::Reject,
                    ),
                ];
            }
            let evidence = json!({ "role": role, "code": code, "cause": cause });
            vec![stop(
                Gate::Bench,
                GateOutcome::Error,
                self::code(Gate::Bench, "other-arm-failed"),
                evidence,
                Decision::Error,
            )]
        }
        Finding::Broken { what } => vec![stop(
            Gate::Bench,
            GateOutcome::Error,
            code(Gate::Bench, "broken"),
            json!({ "cause": what }),
            Decision::Error,
        )],
        Finding::MachineBusy { unpreempted } => vec![stop(
            Gate::Bench,
            GateOutcome::Error,
            code(Gate::Bench, "machine-busy"),
            json!({ "unpreempted": unpreempted, "load": stage.record.load }),
            Decision::Ambiguous,
        )],
        Finding::Noisy { what } => vec![stop(
            Gate::Bench,
            GateOutcome::Error,
            code(Gate::Bench, "noisy"),
            json!({ "control": what, "load": stage.record.load }),
            Decision::Error,
        )],
        Finding::Contradiction { what } => vec![stop(
            Gate::Bench,
            GateOutcome::Fail,
            code(Gate::Bench, "contradiction"),
            json!({ "cause": what }),
            Decision::Reject,
        )],
        Finding::Confirmed | Finding::NotConfirmed | Finding::Undecided { .. } | Finding::BelowFloor => {
            vec![
                pass(Gate::Bench, evidence),
                pass(Gate::PostBench, json!({ "calls": calls(stage) })),
            ]
        }
    }
}

fn calls(stage: &StageReport) -> usize {
    stage
        .record
        .sets
        .iter()
        .flat_map(|set| &set.lanes)
        .map(|lane| lane.ns.len() + 1)
        .sum()
}

/// The least time of the candidate at one workload, over both stages.
pub(crate) fn least_ns(report: &Report, workload: u32) -> Option<u64> {
    std::iter::once(&report.decision)
        .chain(&report.confirmation)
        .flat_map(|stage| &stage.record.sets)
        .flat_map(|set| &set.lanes)
        .filter(|lane| lane.role == Role::Candidate && lane.workload == workload)
        .flat_map(|lane| lane.ns.iter().copied())
        .min()
}

/// CPU time of the candidate's group and the time it was awake, over the whole report.
pub(crate) fn totals(report: &Report) -> (f64, f64) {
    std::iter::once(&report.decision)
        .chain(&report.confirmation)
        .flat_map(|stage| &stage.record.sets)
        .flat_map(|set| &set.clocks)
        .filter(|clocks| clocks.role == Role::Candidate)
        .filter_map(|clocks| Some((clocks.cpu_ns? as f64 / 1e9, clocks.awake_ns as f64 / 1e9)))
        .fold((0.0, 0.0), |(cpu, awake), (more_cpu, more_awake)| {
            (cpu + more_cpu, awake + more_awake)
        })
}

/// The comparison with the baseline: that with the champion where it is the baseline.
pub(crate) fn over_baseline(stage: &StageReport) -> Option<&Comparison> {
    stage.over_baseline.as_ref().or(stage.over_champion.as_ref())
}

/// Gate `distributions`.
pub(crate) fn distributions(report: &Report, data_dependent: DataDependence) -> Said {
    let Some(comparison) = over_baseline(report.last()) else {
        return Said {
            gate: Gate::Distributions,
            outcome: GateOutcome::Skipped,
            code: Some("distributions/skipped".to_owned()),
            evidence: json!({ "why": "no comparison with the baseline" }),
            decision: None,
        };
    };
    // Without a gain there is nothing that could hold or not: gate `gain` says so.
    if comparison.all.lower <= 0.0 {
        return pass(
            Gate::Distributions,
            json!({ "why": "no gain is bounded above zero" }),
        );
    }
    let floor = statistics::distribution_floor(comparison.all, data_dependent);
    let parts = &comparison.distributions;
    let mut by_nature = 0;
    for part in parts {
        let Some(bounds) = statistics::distribution_falls_short(&part.sets, parts.len(), floor) else {
            continue;
        };
        let own = own_slowdown(report.last(), part);
        if !statistics::unevenness_is_own(bounds.upper, floor, own) {
            by_nature += 1;
            continue;
        }
        return stop(
            Gate::Distributions,
            GateOutcome::Fail,
            code(
                Gate::Distributions,
                if bounds.upper < 0.0 { "slower" } else { "uneven" },
            ),
            // Which distribution it was stays the judge's: it may be a hidden one.
            json!({
                "gain": part.interval.point.exp(),
                "gain_at_most": bounds.upper.exp(),
                "gain_needed": floor.exp(),
                "candidate_over_its_fastest": own.exp(),
            }),
            Decision::Reject,
        );
    }
    pass(
        Gate::Distributions,
        json!({ "distributions": parts.len(), "where_the_baseline_is_fast": by_nature }),
    )
}

/// How much longer the candidate takes on a distribution than on its fastest one of the same workload (log-ratio).
fn own_slowdown(stage: &StageReport, part: &Part) -> f64 {
    let mut times: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for lane in stage.record.sets.iter().flat_map(|set| &set.lanes) {
        if lane.role == Role::Candidate && lane.workload == part.workload {
            let calls = lane.unpreempted().map(|ns| ns as f64);
            times.entry(lane.distribution).or_default().extend(calls);
        }
    }
    let medians: BTreeMap<u32, f64> = times
        .iter()
        .filter_map(|(distribution, times)| Some((*distribution, statistics::median(times)?)))
        .collect();
    let here = part
        .distribution
        .and_then(|distribution| medians.get(&distribution));
    let least = medians.values().copied().reduce(f64::min);
    match (here, least) {
        (Some(here), Some(least)) if least > 0.0 => libm::log(here / least),
        _ => f64::INFINITY,
    }
}

/// Gate `gain`.
pub(crate) fn gain(report: &Report) -> Said {
    let stage = report.last();
    let point = stage
        .over_champion
        .as_ref()
        .map_or(0.0, |comparison| comparison.all.point);
    let (decision, said) = report.finding.verdict(point);
    let evidence = json!({
        "finding": report.finding,
        "over_champion": stage.over_champion.as_ref().map(Comparison::speedup),
        "floor": stage.floor,
        "alpha": stage.alpha,
    });
    if decision == Decision::Accept {
        return pass(Gate::Gain, evidence);
    }
    stop(Gate::Gain, GateOutcome::Fail, said, evidence, decision)
}

/// Gate `regression`.
pub(crate) fn regression(report: &Report, max_regression: f64) -> Said {
    let Some(comparison) = over_baseline(report.last()) else {
        return Said {
            gate: Gate::Regression,
            outcome: GateOutcome::Skipped,
            code: Some("regression/skipped".to_owned()),
            evidence: json!({ "why": "no comparison with the baseline" }),
            decision: None,
        };
    };
    let parts = comparison
        .workloads
        .iter()
        .map(|part| (part.workload, part.sets.as_slice()));
    let found = statistics::regressions(parts, max_regression);
    let worst = found
        .iter()
        .map(|regression| regression.upper)
        .fold(f64::NEG_INFINITY, f64::max);
    let evidence = json!({ "worst_upper_slowdown": crate::gates::number(worst), "limit": max_regression });
    if found
        .iter()
        .any(|regression| regression.state == RegressionState::Slower)
    {
        return stop(
            Gate::Regression,
            GateOutcome::Fail,
            code(Gate::Regression, "slower"),
            evidence,
            Decision::Reject,
        );
    }
    if found
        .iter()
        .any(|regression| regression.state == RegressionState::Unproven)
    {
        return stop(
            Gate::Regression,
            GateOutcome::Fail,
            code(Gate::Regression, "unproven"),
            evidence,
            Decision::Revise,
        );
    }
    pass(Gate::Regression, evidence)
}
