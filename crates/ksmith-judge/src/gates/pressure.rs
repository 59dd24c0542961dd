//! The second half of gate `probes`: the judge's own pressure on every input, and which of its failures count.
//!
//! A wrong result under pressure counts only where the contract's tolerance can be met there, because an honest kernel
//! must never be wronged. The witnesses are two. The *baseline*, the user's own code in the same precision, must meet the
//! tolerance on the same case (half of it beyond the plain tier). And the *reference* must be well-conditioned there: if
//! changing every input by its last bit moves an output by many tolerances, no arithmetic in this precision can hold it.
//! A case without both is set aside, and the evidence says how many were. Crashes, writes outside and late writes count
//! whatever the witnesses say.

use ksmith_ledger::Gate;
use ksmith_task::contract::Compare;
use ksmith_task::{Role, Tensor};

use super::context::{End, Scoring, Step, failed};
use super::judgement::{judge, rule};
use super::runner::{Runner, Setup};
use crate::cases::{Case, Pressed, Tier};
use crate::compare::Cause;
use crate::judge::JudgeError;
use crate::number::{self, Values};

/// Cases at the dev shapes and their neighbours take at most this storage.
const WIDEST: u64 = 4 << 20;
/// The same where only small shapes run.
const WIDEST_SMALL: u64 = 1 << 20;
/// Share of the tolerance that the baseline may use beyond the plain tier.
const BEYOND: f64 = 0.5;
/// Outputs that move by more tolerances than this under one bit of every input are nobody's fault.
const ILL: f64 = 16.0;
/// Changes of the last bits that are tried.
const CHANGES: u64 = 2;
/// Expectations beyond this share of the largest value are no test of arithmetic.
const ROOM: f64 = 0.25;

/// How many cases were held against the candidate, and how many set aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) held: usize,
    pub(crate) set_aside: usize,
}

/// Shows every case of the judge's own probes.
pub(crate) fn pressures(scoring: &mut Scoring<'_>, runner: &mut Runner) -> Step<Counts> {
    let widest = if scoring.small { WIDEST_SMALL } else { WIDEST };
    let cases = scoring.plan().pressures(widest)?;
    let mut counts = Counts::default();
    let mut witness = None;
    for Pressed { spec, tier } in cases {
        let case = scoring.oracle.case(&spec)?;
        if !in_range(&case) {
            counts.set_aside += 1;
            continue;
        }
        let answer = match runner.call(&case, Setup::new(&spec.bound)) {
            Ok(answer) => answer,
            Err(error) => return failed(Gate::Probes, error),
        };
        match scoring.judge(Gate::Probes, &case, answer)? {
            Ok(_) => counts.held += 1,
            Err(end) if !is_about_values(&end) || vouched(scoring, &mut witness, &case, tier)? => {
                return Ok(Err(end));
            }
            Err(_) => counts.set_aside += 1,
        }
    }
    Ok(Ok(counts))
}

fn is_about_values(end: &End) -> bool {
    const CAUSES: [Cause; 5] = [
        Cause::Value,
        Cause::NonFinite,
        Cause::Integer,
        Cause::Index,
        Cause::Checker,
    ];
    match end {
        End::Fail(code, _) => CAUSES
            .iter()
            .any(|cause| code.split_once('/').is_some_and(|(_, name)| name == cause.code())),
        End::Pass(_) | End::Skipped(_) => false,
    }
}

/// Whether every expectation is a number well inside the output's range.
fn in_range(case: &Case) -> bool {
    case.spec
        .bound
        .outputs()
        .zip(&case.expected)
        .all(|(tensor, expected)| match &expected.want {
            Values::Whole(_) => true,
            Values::Real(want) if tensor.dtype.is_float() => {
                let most = ROOM * number::largest(tensor.dtype);
                want.iter().all(|value| value.abs() <= most)
            }
            Values::Real(want) => want.iter().all(|value| value.is_finite()),
        })
}

/// Whether both witnesses say that the tolerance can be met on this case.
fn vouched(
    scoring: &mut Scoring<'_>,
    witness: &mut Option<Runner>,
    case: &Case,
    tier: Tier,
) -> Result<bool, JudgeError> {
    let mut runner = match witness.take() {
        Some(runner) => runner,
        None => scoring.start_baseline()?,
    };
    let answer = match runner.call(case, Setup::new(&case.spec.bound)) {
        Ok(answer) => answer,
        Err(error) => {
            // The baseline's own fault is no witness; anything else is ours.
            let _ = failed::<()>(Gate::Probes, error)?;
            return Ok(false);
        }
    };
    *witness = Some(runner);
    let judgement = judge(case, &answer.outputs, &scoring.oracle.checkers())?;
    let allowed = match tier {
        Tier::Plain => 1.0,
        Tier::Beyond => BEYOND,
    };
    if judgement.failed.is_some() || judgement.ratio > allowed {
        return Ok(false);
    }
    for change in 0..CHANGES {
        if moves_far(scoring, case, change)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether one bit at the end of every real input moves a compared float output by many tolerances.
fn moves_far(scoring: &mut Scoring<'_>, case: &Case, change: u64) -> Result<bool, JudgeError> {
    let bound = &case.spec.bound;
    let mut stream = scoring
        .plan()
        .decisions(&format!("last bits {} {change}", case.spec.number));
    let mut inputs = case.inputs.clone();
    for (tensor, values) in bound.inputs().zip(&mut inputs.values) {
        let (Values::Real(values), Role::Input(input), Some(unit)) =
            (values, &tensor.role, tensor.dtype.unit_roundoff())
        else {
            continue;
        };
        for value in values {
            let side = if stream.below(2) == 0 { 2.0 } else { -2.0 };
            let moved = number::round(tensor.dtype, *value * (1.0 + side * unit));
            if moved.is_finite() && input.domain.is_none_or(|domain| domain.contains(moved)) {
                *value = moved;
            }
        }
    }
    let moved = scoring.oracle.expect(bound, &inputs)?;
    let far = |tensor: &Tensor, one: &crate::cases::Expected, other: &crate::cases::Expected| {
        let rule = rule(tensor);
        (0..one.want.len().min(other.want.len())).any(|at| {
            let scale = one.scale.as_ref().map_or(0.0, |scale| scale[at]);
            let (before, after) = (one.want.real(at), other.want.real(at));
            (after - before).abs() > ILL * rule.bound(before, scale)
        })
    };
    Ok(bound
        .outputs()
        .zip(case.expected.iter().zip(&moved))
        .any(|(tensor, (one, other))| compared_as_numbers(tensor) && far(tensor, one, other)))
}

/// Ties and rounding are decided by the inputs as they are: a changed bit says nothing about them.
fn compared_as_numbers(tensor: &Tensor) -> bool {
    match &tensor.role {
        Role::Output(output) => {
            tensor.dtype.is_float()
                && output.along.is_none()
                && matches!(output.compare, Compare::Elementwise)
        }
        Role::Input(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::code;
    use serde_json::json;

    #[test]
    fn only_wrong_values_may_be_set_aside() {
        let end = |cause: &str| End::Fail(code(Gate::Probes, cause), json!({}));
        for cause in [
            "wrong-value",
            "non-finite",
            "wrong-integer",
            "wrong-index",
            "checker",
        ] {
            assert!(is_about_values(&end(cause)), "{cause}");
        }
        for cause in [
            "crash",
            "canary",
            "late-write",
            "gap-write",
            "timeout",
            "input-write",
            "forbidden-call",
        ] {
            assert!(!is_about_values(&end(cause)), "{cause}");
        }
    }
}
