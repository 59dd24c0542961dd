//! The stable codes of process and review, with meaning, example and remedy; the second half of `docs/verdicts.md`.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

/// Why a process gate refused, or why a review did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each cause is described in its row below")]
pub enum Cause {
    ContractChanged,
    Link,
    TooLarge,
    Secret,
    Identical,
    NearIdentical,
    Hypothesis,
    ClaimWithoutEvidence,
    UnknownEvidence,
    StaleEvidence,
    ClaimBeyondEvidence,
    RepeatedError,
    Stall,
    OpenDecision,
    OpenAmbiguity,
    NeedsHuman,
    ReviewEmpty,
    ReviewTooLong,
    ReviewNotJson,
    ReviewBadShape,
    ReviewWrongTask,
    ReviewWrongSource,
    ReviewWrongJudge,
    ReviewWrongNonce,
    ReviewContradiction,
    ReviewTimedOut,
    ReviewEnded,
    ReviewCouldNotRun,
    ReviewWroteFiles,
    ReviewSameVendor,
    ReviewVeto,
    ReviewRoundsSpent,
}

struct Row {
    code: &'static str,
    meaning: &'static str,
    example: &'static str,
    action: &'static str,
}

impl Cause {
    /// Every cause, in the order of the page.
    pub const ALL: [Self; 32] = [
        Self::ContractChanged,
        Self::Link,
        Self::TooLarge,
        Self::Secret,
        Self::Identical,
        Self::NearIdentical,
        Self::Hypothesis,
        Self::ClaimWithoutEvidence,
        Self::UnknownEvidence,
        Self::StaleEvidence,
        Self::ClaimBeyondEvidence,
        Self::RepeatedError,
        Self::Stall,
        Self::OpenDecision,
        Self::OpenAmbiguity,
        Self::NeedsHuman,
        Self::ReviewEmpty,
        Self::ReviewTooLong,
        Self::ReviewNotJson,
        Self::ReviewBadShape,
        Self::ReviewWrongTask,
        Self::ReviewWrongSource,
        Self::ReviewWrongJudge,
        Self::ReviewWrongNonce,
        Self::ReviewContradiction,
        Self::ReviewTimedOut,
        Self::ReviewEnded,
        Self::ReviewCouldNotRun,
        Self::ReviewWroteFiles,
        Self::ReviewSameVendor,
        Self::ReviewVeto,
        Self::ReviewRoundsSpent,
    ];

    /// The stable code, `process/…` or `review/…`.
    pub fn code(self) -> &'static str {
        self.row().code
    }

    fn row(self) -> Row {
        let row = |code, meaning, example, action| Row {
            code,
            meaning,
            example,
            action,
        };
        match self {
            Self::ContractChanged => row(
                "process/contract-changed",
                "A locked file is no longer what it was; the run stops with exit code 4.",
                "An easier reference, written while the run goes on.",
                "Restore the file and resume, or start a new run.",
            ),
            Self::Link => row(
                "process/link",
                "The candidate's folder holds a link, a device, a socket, a pipe, or something that cannot be read.",
                "A symbolic link to the ledger.",
                "Leave plain files and folders.",
            ),
            Self::TooLarge => row(
                "process/too-large",
                "The candidate or one of its files is larger than the gate allows.",
                "A table of ten thousand generated lines.",
                "Write a smaller kernel.",
            ),
            Self::Secret => row(
                "process/secret",
                "The change holds something shaped like a credential; the text itself is not recorded.",
                "An API key in a comment.",
                "Remove it, and revoke the key.",
            ),
            Self::Identical => row(
                "process/identical",
                "After removal of comments, layout and the names that it declares itself, the candidate is one that was tried.",
                "A rejected kernel with renamed variables.",
                "Change what is computed or how.",
            ),
            Self::NearIdentical => row(
                "process/near-identical",
                "Three candidates that are nearly this one were dropped for the same reason.",
                "A fourth shuffle of the same lines.",
                "Change the idea, not the spelling.",
            ),
            Self::Hypothesis => row(
                "process/hypothesis",
                "The candidate has no hypothesis, or more than one.",
                "A list of three changes.",
                "State one idea in one sentence.",
            ),
            Self::ClaimWithoutEvidence => row(
                "process/claim-without-evidence",
                "A claim of the writer names no record that shows it.",
                "`all tests pass`, without a verdict.",
                "Name the record, or do not claim.",
            ),
            Self::UnknownEvidence => row(
                "process/unknown-evidence",
                "A claim names a record that does not exist.",
                "An invented verdict id.",
                "Name a record of this run.",
            ),
            Self::StaleEvidence => row(
                "process/stale-evidence",
                "A claim names a record about other files.",
                "The verdict of the version before the last edit.",
                "Have the present files judged.",
            ),
            Self::ClaimBeyondEvidence => row(
                "process/claim-beyond-evidence",
                "The record that a claim names shows less than it says.",
                "2x claimed, 1.1x measured.",
                "Claim the lower bound.",
            ),
            Self::RepeatedError => row(
                "process/repeated-error",
                "A direction failed with the same code in three rounds in a row, so it is closed.",
                "`compile/error` three times.",
                "Nothing: the run goes on with another direction.",
            ),
            Self::Stall => row(
                "process/stall",
                "No significant gain for long: a new plan, then another family of ideas, then the end of the rounds.",
                "Eight rounds without a champion.",
                "Nothing: the rung that was reached is in the record.",
            ),
            Self::OpenDecision => row(
                "process/open-decision",
                "The plan leaves a decision to a person; the start waits for it.",
                "May results differ between two runs?",
                "`ksmith answer RUN QUESTION CHOICE`.",
            ),
            Self::OpenAmbiguity => row(
                "process/open-ambiguity",
                "The contract was reviewed, and an ambiguity has no resolution.",
                "Which of equal elements is chosen?",
                "`ksmith review TASK --resolve KEY=TEXT`.",
            ),
            Self::NeedsHuman => row(
                "process/needs-human",
                "A question to a person was not answered before its deadline; the default is to stop.",
                "An open decision of the plan over a weekend.",
                "Answer it and start again.",
            ),
            Self::ReviewEmpty => row(
                "review/empty",
                "The reviewer said nothing.",
                "A command that prints nothing.",
                "Correct the reviewer; silence never passes.",
            ),
            Self::ReviewTooLong => row(
                "review/too-long",
                "The answer is longer than the limit.",
                "A reviewer that quotes its whole input.",
                "Answer with the object alone.",
            ),
            Self::ReviewNotJson => row(
                "review/not-json",
                "The answer is not exactly one JSON object.",
                "A refusal in prose, a verdict between sentences, two verdicts.",
                "Answer with the object alone.",
            ),
            Self::ReviewBadShape => row(
                "review/bad-shape",
                "The object is not of the stated shape: a field is missing, unknown, repeated or out of range.",
                "`\"verdict\": \"LGTM\"`.",
                "Follow the schema in the request.",
            ),
            Self::ReviewWrongTask => row(
                "review/wrong-task",
                "The answer is bound to another task.",
                "An answer kept from another run.",
                "Review what was asked.",
            ),
            Self::ReviewWrongSource => row(
                "review/wrong-source",
                "The answer is bound to other files than those under review.",
                "An approval of the version before the last edit.",
                "Review what was asked.",
            ),
            Self::ReviewWrongJudge => row(
                "review/wrong-judge",
                "The answer is bound to another build of the judge.",
                "An answer from before an upgrade.",
                "Review what was asked.",
            ),
            Self::ReviewWrongNonce => row(
                "review/wrong-nonce",
                "The answer does not carry this attempt's own number.",
                "A planted or replayed verdict.",
                "Copy the number from the request.",
            ),
            Self::ReviewContradiction => row(
                "review/contradiction",
                "Verdict and findings do not agree.",
                "`pass` with a blocking finding, `veto` without one.",
                "Decide.",
            ),
            Self::ReviewTimedOut => row(
                "review/timed-out",
                "The reviewer did not answer in time.",
                "A command that waits for a terminal.",
                "Raise the limit or correct the reviewer.",
            ),
            Self::ReviewEnded => row(
                "review/ended",
                "The reviewer ended with an error, whatever it had printed.",
                "Exit code 1 after a verdict.",
                "Correct the reviewer.",
            ),
            Self::ReviewCouldNotRun => row(
                "review/could-not-run",
                "The reviewer could not be started, or its model could not be reached.",
                "A program that is not there.",
                "The record names the cause.",
            ),
            Self::ReviewWroteFiles => row(
                "review/wrote-files",
                "What was under review changed while it was reviewed.",
                "A reviewer that repairs the kernel.",
                "Read only; say what to change.",
            ),
            Self::ReviewSameVendor => row(
                "review/same-vendor",
                "Writer and reviewer are of one vendor, or that cannot be ruled out.",
                "One model for both parts.",
                "Choose another reviewer, name its vendor, or pass `--same-vendor`, which is recorded.",
            ),
            Self::ReviewVeto => row(
                "review/veto",
                "The reviewer objects, with at least one blocking finding.",
                "A read past the end of an odd row, which no test reaches.",
                "Answer the finding with another candidate.",
            ),
            Self::ReviewRoundsSpent => row(
                "review/rounds-spent",
                "This line of candidates was sent back twice; it is not reviewed again and not crowned.",
                "A third version of a vetoed kernel.",
                "Start from another candidate.",
            ),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One refusal of a process gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Why.
    pub cause: Cause,
    /// What was seen, one sentence; never holds a secret.
    pub detail: String,
}

impl Refusal {
    pub(crate) fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self {
            cause,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause, self.detail)
    }
}

/// The part of `docs/verdicts.md` that these codes make.
pub fn document() -> String {
    let mut text = String::new();
    for (prefix, title, intro) in [
        (
            "process/",
            "process",
            "Gates on how a candidate came to be, and on the course of a run. They refuse before anything is compiled; \
             `docs/process.md` describes them.",
        ),
        (
            "review/",
            "review",
            "A reviewer may veto or direct and never promotes. Whatever is not a valid verdict, bound to what was \
             reviewed, is asked for once more and then counts as not passed; `docs/review.md` describes it.",
        ),
    ] {
        let _ = write!(
            text,
            "\n## {title}\n\n{intro}\n\n| code | meaning | example | what to do |\n|---|---|---|---|\n"
        );
        for row in Cause::ALL.into_iter().map(Cause::row) {
            if row.code.starts_with(prefix) {
                let _ = writeln!(
                    text,
                    "| `{}` | {} | {} | {} |",
                    row.code, row.meaning, row.example, row.action
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_verdicts_ends_with_these_codes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts.md");
        let written = std::fs::read_to_string(path).unwrap();
        let start = written.find("\n## process\n").unwrap_or(written.len());
        if std::env::var_os("KSMITH_BLESS").is_some() {
            std::fs::write(path, format!("{}{}", &written[..start], document())).unwrap();
        } else {
            assert_eq!(
                &written[start..],
                document(),
                "run the test with KSMITH_BLESS=1 to write the end of the page anew"
            );
        }
    }

    #[test]
    fn codes_are_unique_and_belong_to_one_of_two_parts() {
        let mut codes: Vec<&str> = Cause::ALL.into_iter().map(Cause::code).collect();
        assert!(
            codes
                .iter()
                .all(|code| code.starts_with("process/") || code.starts_with("review/"))
        );
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
