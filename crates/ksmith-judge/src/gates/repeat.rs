//! Gate `repeat`: the same inputs in other processes, at another placement, give the same result.

use ksmith_ledger::Gate;
use ksmith_task::contract::Repeat;
use ksmith_worker::cpu::Edge;
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::runner::Setup;
use crate::codes::code;

pub(crate) fn repeat(scoring: &mut Scoring<'_>) -> GateEnd {
    let bitwise = scoring.instance.task().contract().correctness.repeat == Repeat::Bitwise;
    let mut cases = scoring.hidden.clone();
    cases.truncate(4);
    cases.extend(scoring.tiny.iter().take(2).cloned());
    let mut first = step!(scoring.start(Gate::Repeat));
    let mut second = step!(scoring.start(Gate::Repeat));
    // The second process sees the cases in the opposite order: what one call leaves behind must not matter.
    let mut outputs = Vec::new();
    for case in &cases {
        let setup = Setup::new(&case.spec.bound);
        outputs.push(
            step!(scoring.try_case(Gate::Repeat, &mut first, case, setup))
                .0
                .outputs,
        );
    }
    for (case, before) in cases.iter().zip(&outputs).rev() {
        let setup = Setup::new(&case.spec.bound).edge(Edge::Start);
        let (answer, _) = step!(scoring.try_case(Gate::Repeat, &mut second, case, setup));
        if bitwise && answer.outputs != *before {
            return Ok(End::Fail(code(Gate::Repeat, "differs"), json!({})));
        }
    }
    let rule = if bitwise { "bitwise" } else { "tolerance" };
    Ok(End::Pass(json!({ "cases": cases.len(), "rule": rule })))
}
