//! What a writer says of its work, against what the record shows.
//!
//! Nothing that a writer says is evidence. A claim counts only by the record that it names, and only while that record
//! is about the files at hand. Prose is read for one purpose: to count what was claimed without a record.

use std::collections::BTreeMap;

use ksmith_ledger::{Decision, Verdict};
use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use super::{Cause, Refusal};

/// What is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what", deny_unknown_fields)]
pub enum Claimed {
    /// Every correctness gate passes.
    Correct,
    /// This many times as fast as the champion.
    Faster {
        /// Ratio of times; above 1 is faster.
        ratio: f64,
    },
    /// The task's goal is met.
    Done,
}

/// One claim, with the record that is to show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// What is claimed.
    pub claimed: Claimed,
    /// Digest of the verdict that shows it, as it stands in the record.
    #[serde(default)]
    pub evidence: Option<String>,
}

/// What a writer says beside the files that it leaves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Statement {
    /// Its claims.
    pub claims: Vec<Claim>,
    /// Its prose; shown to a reviewer last, if at all.
    pub prose: String,
}

impl Statement {
    /// Whether it says that the work is done.
    pub fn says_done(&self) -> bool {
        self.claims.iter().any(|claim| claim.claimed == Claimed::Done)
    }
}

/// Verdicts of the run by their digests.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    verdicts: BTreeMap<String, (&'a Verdict, bool)>,
}

impl<'a> Evidence<'a> {
    /// Adds a verdict; `meets_goal` is what the run's own rule says of it.
    pub fn add(&mut self, verdict: &'a Verdict, meets_goal: bool) {
        self.verdicts
            .insert(verdict.digest().to_string(), (verdict, meets_goal));
    }
}

/// Checks claims about the files with digest `source`.
pub fn check_claims(claims: &[Claim], source: Digest, evidence: &Evidence<'_>) -> Vec<Refusal> {
    claims
        .iter()
        .filter_map(|claim| check(claim, source, evidence))
        .collect()
}

fn check(claim: &Claim, source: Digest, evidence: &Evidence<'_>) -> Option<Refusal> {
    let what = match claim.claimed {
        Claimed::Correct => "`correct`".to_owned(),
        Claimed::Faster { ratio } => format!("`{ratio:.3} times as fast`"),
        Claimed::Done => "`done`".to_owned(),
    };
    let refuse = |cause: Cause, why: &str| Some(Refusal::new(cause, format!("{what}: {why}")));
    let Some(id) = claim
        .evidence
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty())
    else {
        return refuse(Cause::ClaimWithoutEvidence, "no record is named");
    };
    let Some((verdict, meets_goal)) = evidence.verdicts.get(id) else {
        return refuse(Cause::UnknownEvidence, "the record that it names does not exist");
    };
    if verdict.candidate != source {
        return refuse(
            Cause::StaleEvidence,
            "the record that it names is about other files",
        );
    }
    let shown = match claim.claimed {
        Claimed::Correct => match verdict.verdict {
            Decision::Accept | Decision::Revise => true,
            Decision::Reject => verdict.speedup.is_some(),
            Decision::Ambiguous | Decision::Error => false,
        },
        // A claim is held against the lower bound, which is all that was shown.
        Claimed::Faster { ratio } => verdict
            .speedup
            .is_some_and(|gain| ratio.is_finite() && ratio <= gain.lower),
        Claimed::Done => *meets_goal,
    };
    if shown {
        None
    } else {
        refuse(
            Cause::ClaimBeyondEvidence,
            "the record that it names does not show it",
        )
    }
}

/// Phrases of a prose that claim success. A prose with any of them and no claim that holds is over-claiming.
pub fn unproved(prose: &str) -> Vec<&'static str> {
    const PHRASES: [&str; 12] = [
        "all tests pass",
        "tests passed",
        "all gates pass",
        "verified",
        "production ready",
        "production-ready",
        "is complete",
        "fully optimi",
        "faster than",
        "x faster",
        "x speedup",
        "goal met",
    ];
    let lower = prose.to_lowercase();
    PHRASES
        .into_iter()
        .filter(|phrase| lower.contains(phrase))
        .collect()
}

#[cfg(test)]
mod tests {
    use ksmith_ledger::{Scope, Speedup};

    use super::*;

    fn verdict(source: &[u8]) -> Verdict {
        Verdict {
            verdict: Decision::Revise,
            code: "gain/undecided".into(),
            gate: None,
            tier: "native".into(),
            isolation: "box".into(),
            scope: Scope::Cpu,
            scope_note: Scope::Cpu.sentence().into(),
            speedup: Some(Speedup {
                point: 1.3,
                lower: 1.2,
                upper: 1.4,
            }),
            over_baseline: None,
            over_flag_control: None,
            gates: Vec::new(),
            task: Digest::of(b"task"),
            candidate: Digest::of(source),
            judge: Digest::of(b"judge"),
            device: Digest::of(b"device"),
        }
    }

    fn claim(claimed: Claimed, evidence: Option<String>) -> Claim {
        Claim { claimed, evidence }
    }

    #[test]
    fn a_claim_counts_by_a_record_about_these_very_files() {
        let (mine, old) = (verdict(b"mine"), verdict(b"old"));
        let mut evidence = Evidence::default();
        evidence.add(&mine, false);
        evidence.add(&old, true);
        let (mine_id, old_id) = (mine.digest().to_string(), old.digest().to_string());
        let faster = |ratio| Claimed::Faster { ratio };
        for (claimed, id, expected) in [
            (Claimed::Correct, Some(mine_id.clone()), None),
            (faster(1.2), Some(mine_id.clone()), None),
            (
                faster(1.3),
                Some(mine_id.clone()),
                Some(Cause::ClaimBeyondEvidence),
            ),
            (
                faster(f64::NAN),
                Some(mine_id.clone()),
                Some(Cause::ClaimBeyondEvidence),
            ),
            (Claimed::Done, Some(mine_id), Some(Cause::ClaimBeyondEvidence)),
            (Claimed::Done, Some(old_id), Some(Cause::StaleEvidence)),
            (
                Claimed::Correct,
                Some("0".repeat(64)),
                Some(Cause::UnknownEvidence),
            ),
            (
                Claimed::Correct,
                Some("  ".into()),
                Some(Cause::ClaimWithoutEvidence),
            ),
            (Claimed::Correct, None, Some(Cause::ClaimWithoutEvidence)),
        ] {
            let found = check_claims(&[claim(claimed, id)], Digest::of(b"mine"), &evidence);
            assert_eq!(
                found.first().map(|refusal| refusal.cause),
                expected,
                "{claimed:?}"
            );
        }
    }

    #[test]
    fn over_claiming_prose_is_counted_and_plain_prose_is_not() {
        assert_eq!(
            unproved("All tests pass, 2.3x faster."),
            ["all tests pass", "x faster"]
        );
        assert_eq!(unproved("Unrolled the inner loop by four."), Vec::<&str>::new());
    }

    #[test]
    fn a_statement_is_read_strictly() {
        let text = r#"{"claims":[{"claimed":{"what":"faster","ratio":2.0},"evidence":"ab"}],"prose":"x"}"#;
        let statement: Statement = serde_json::from_str(text).unwrap();
        assert_eq!(statement.claims[0].claimed, Claimed::Faster { ratio: 2.0 });
        assert!(!statement.says_done());
        assert!(serde_json::from_str::<Statement>(r#"{"verdict":"accept"}"#).is_err());
    }
}
