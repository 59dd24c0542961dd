//! Gates `bounds` and `poison`: nothing outside the buffers, everything inside them.

use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_worker::cpu::Edge;
use serde_json::json;

use super::context::{End, GateEnd, Scoring, step};
use super::runner::Setup;
use crate::cases::{Case, POISONS, dev_fills, distribution_fills, distributions, neighbour, tiny};
use crate::codes::code;

/// Small odd shapes and neighbours of the dev shapes, with fresh secret inputs.
fn odd_cases(
    scoring: &mut Scoring<'_>,
    stream: &str,
    count: usize,
) -> Result<Vec<Arc<Case>>, crate::judge::JudgeError> {
    let plan = scoring.plan();
    let mut decisions = plan.decisions(stream);
    let mut shapes = tiny(scoring.instance, &mut decisions, count);
    for workload in scoring.instance.workloads(scoring.backend) {
        if let Some(bound) = neighbour(scoring.instance, &mut decisions, &workload.axes)
            && bound.storage_bytes() <= if scoring.small { 1 << 20 } else { 8 << 20 }
        {
            shapes.push(bound);
        }
    }
    let mut cases = Vec::new();
    for (number, bound) in shapes.iter().enumerate() {
        let kind = number % distributions(scoring.instance, bound);
        let fills = distribution_fills(scoring.instance, bound, kind, &mut decisions)?;
        let spec = plan.case(
            bound,
            if number == 0 { dev_fills(bound) } else { fills },
            stream,
            number as u64,
        );
        cases.push(Arc::new(scoring.oracle.case(&spec)?));
    }
    Ok(cases)
}

pub(crate) fn bounds(scoring: &mut Scoring<'_>) -> GateEnd {
    let cases = odd_cases(scoring, "bounds", 6)?;
    for edge in [Edge::End, Edge::Start] {
        let mut runner = step!(scoring.start(Gate::Bounds));
        for case in &cases {
            let setup = Setup::new(&case.spec.bound).edge(edge);
            step!(scoring.try_case(Gate::Bounds, &mut runner, case, setup));
        }
    }
    Ok(End::Pass(json!({ "cases": cases.len(), "edges": 2 })))
}

pub(crate) fn poison(scoring: &mut Scoring<'_>) -> GateEnd {
    let cases = odd_cases(scoring, "poison", 4)?;
    let mut answers = Vec::new();
    for poison in POISONS {
        let mut runner = step!(scoring.start(Gate::Poison));
        let mut outputs = Vec::new();
        for case in &cases {
            let setup = Setup::new(&case.spec.bound).poison(poison);
            let answer = match runner.call(case, setup) {
                Ok(answer) => answer,
                Err(error) => {
                    step!(super::context::failed::<()>(Gate::Poison, error));
                    continue;
                }
            };
            outputs.push(answer);
        }
        answers.push(outputs);
    }
    let [first, second] = &answers[..] else {
        return Ok(End::Skipped("no poisons"));
    };
    for ((case, one), other) in cases.iter().zip(first).zip(second) {
        for (index, tensor) in case.spec.bound.outputs().enumerate() {
            if tensor.inplace.is_some() {
                continue;
            }
            let width = tensor.dtype.bytes();
            let held = |outputs: &[Vec<u8>], poison: u8| -> Vec<bool> {
                outputs[index]
                    .chunks(width)
                    .map(|element| element.iter().all(|byte| *byte == poison))
                    .collect()
            };
            // Unwritten means that an element holds either poison in its own run: one of them alone may be a result.
            let never = held(&one.outputs, POISONS[0])
                .into_iter()
                .zip(held(&other.outputs, POISONS[1]));
            if never.into_iter().any(|(first, second)| first && second) {
                return Ok(End::Fail(
                    code(Gate::Poison, "unwritten"),
                    json!({ "output": tensor.name }),
                ));
            }
        }
        step!(scoring.judge(Gate::Poison, case, one.clone()));
        if let Err(end) = scoring.judge(Gate::Poison, case, other.clone())? {
            // Right over one poison and wrong over the other: it read what the memory held.
            let _ = end;
            return Ok(End::Fail(code(Gate::Poison, "old-output"), json!({})));
        }
    }
    Ok(End::Pass(
        json!({ "cases": cases.len(), "poisons": POISONS.len() }),
    ))
}
