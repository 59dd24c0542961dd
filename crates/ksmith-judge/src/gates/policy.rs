//! Gate `policy`: languages, libraries, includes.

use ksmith_ledger::Gate;
use serde_json::json;

use super::context::{End, GateEnd, Scoring};
use crate::codes::code;

pub(crate) fn policy(scoring: &mut Scoring<'_>) -> GateEnd {
    if scoring.candidate.backend() != scoring.backend {
        let backend = scoring.candidate.backend().name();
        return Ok(End::Fail(
            code(Gate::Policy, "backend"),
            json!({ "backend": backend }),
        ));
    }
    Ok(match scoring.candidate.check_policy(scoring.instance) {
        Ok(()) => End::Pass(json!({})),
        Err(error) => End::Fail(error.code().to_owned(), json!({ "message": error.to_string() })),
    })
}
