//! Gate `precision`: the error against float64, as a share of the tolerance, against the baseline's on the same cases.

use ksmith_ledger::Gate;
use ksmith_task::chain;
use serde_json::json;

use super::context::{End, GateEnd, Scoring, number};
use super::runner::Setup;
use crate::codes::code;

/// A candidate may use half of the tolerance without a question.
const FREE: f64 = 0.5;
/// Beyond that it may be so much worse than the baseline.
const FACTOR: f64 = 1.5;

pub(crate) fn precision(scoring: &mut Scoring<'_>) -> GateEnd {
    let ours = scoring.ratios.iter().fold(0.0f64, |most, ratio| most.max(*ratio));
    if ours <= FREE {
        return Ok(End::Pass(json!({ "worst_error_over_tolerance": number(ours) })));
    }
    let mut runner = scoring.start_baseline()?;
    let mut theirs = 0.0f64;
    for case in scoring.hidden.clone() {
        let answer = runner
            .call(&case, Setup::new(&case.spec.bound).judged_only())
            .map_err(|error| crate::judge::JudgeError::Worker(chain(&error)))?;
        theirs = theirs.max(answer.judgement(&case, &scoring.oracle.checkers())?.ratio);
    }
    let limit = FREE.max(FACTOR * theirs);
    let evidence = json!({
        "worst_error_over_tolerance": number(ours), "baseline": number(theirs), "limit": number(limit),
    });
    Ok(if ours <= limit {
        End::Pass(evidence)
    } else {
        End::Fail(code(Gate::Precision, "too-coarse"), evidence)
    })
}
