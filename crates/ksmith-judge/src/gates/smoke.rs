//! Gates `smoke` and `dev`: visible cases, evidence in full.

use ksmith_ledger::Gate;
use ksmith_task::Backend;
use ksmith_worker::cpu::Edge;
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::runner::Setup;

pub(crate) fn smoke(scoring: &mut Scoring<'_>) -> GateEnd {
    let mut runner = step!(scoring.start(Gate::Smoke));
    for case in scoring.tiny.clone() {
        step!(scoring.try_case(Gate::Smoke, &mut runner, &case, Setup::new(&case.spec.bound)));
    }
    let level = runner.level();
    scoring.leave(runner);
    Ok(End::Pass(
        json!({ "cases": scoring.tiny.len(), "isolation": level.name() }),
    ))
}

pub(crate) fn dev(scoring: &mut Scoring<'_>) -> GateEnd {
    let mut runner = step!(scoring.start(Gate::Dev));
    let mut worst = 0.0f64;
    // Every workload in the middle of a page once: elsewhere they lie at a page's end. On a device that costs a layout.
    let edge = match scoring.backend {
        Backend::Cpu => Edge::Neither,
        Backend::Cuda => Edge::End,
    };
    for (_, case) in scoring.dev.clone() {
        let (_, judgement) = step!(scoring.try_case(
            Gate::Dev,
            &mut runner,
            &case,
            Setup::new(&case.spec.bound).edge(edge).judged_only()
        ));
        worst = worst.max(judgement.ratio);
    }
    scoring.leave(runner);
    Ok(End::Pass(
        json!({ "cases": scoring.dev.len(), "worst_error_over_tolerance": worst }),
    ))
}
