//! `candidate.toml` as written.
#[derive(Debug)]
#[expect(dead_code, reason = "filled in next")]
pub(crate) struct CandidateDocument;
