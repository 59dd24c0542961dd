//! Process gates on proposals and on the course of a run.

use ksmith_agents::process::{
    Cause, Evidence, Fingerprint, Past, Refusal, Rung, SizeLimits, check_bytes, check_claims,
    check_hypothesis, check_repeat, check_secrets, check_size, unproved,
};
use ksmith_agents::writers::{Bounds, Oddity, Snapshot};
use ksmith_ledger::{ProcessGate, Role};
use ksmith_task::{Candidate, Proposal};
use serde_json::json;

use crate::session::Session;
use crate::{Event, Mechanism, RunError, WriterChoice, course};

/// What the gates found in a proposal before anything of it was stored.
#[derive(Debug, Default)]
pub(crate) struct Inspected {
    refusals: Vec<Refusal>,
    /// Whether its files may go into the object store.
    pub(crate) is_storable: bool,
    fingerprint: Option<Fingerprint>,
}

impl Session<'_> {
    /// Looks at a proposal's folder. Links, secrets and size are always looked at; repeats and hypotheses are
    /// mechanism `process`. The yardsticks of our own are not looked at.
    pub(crate) fn inspect(&mut self, proposal: &Proposal, role: Role) -> Result<Inspected, RunError> {
        let mut inspected = Inspected {
            is_storable: true,
            ..Inspected::default()
        };
        if role != Role::Candidate {
            return Ok(inspected);
        }
        let folder = &proposal.folder;
        let limits = SizeLimits::default();
        let root = folder
            .canonicalize()
            .map_err(RunError::io("read folder", folder))?;
        let left = Snapshot::read(&root, &[], Bounds::CANDIDATE);
        let oddity = left.oddities.first().map(refuse_oddity);
        let files: Vec<(String, Vec<u8>)> = left.files.into_iter().collect();
        let refused = oddity
            .or_else(|| check_bytes(&files, limits))
            .or_else(|| check_secrets(&files));
        if let Some(refusal) = refused {
            inspected.is_storable = false;
            inspected.refusals.push(refusal);
            return Ok(inspected);
        }
        inspected.refusals.extend(check_size(&files, limits));
        if !self.mechanisms.has(Mechanism::Process) {
            return Ok(inspected);
        }
        inspected.refusals.extend(check_hypothesis(&proposal.hypothesis));
        let digest = Candidate::load(folder).map(|candidate| candidate.digest()).ok();
        // The very same bytes are turned away by `policy/duplicate`.
        let is_copy = self
            .memory
            .candidates
            .iter()
            .any(|past| Some(past.proposed.digest) == digest);
        let fingerprint = Fingerprint::of(&files);
        if !is_copy {
            inspected.refusals.extend(self.repeat_of(&fingerprint)?);
        }
        inspected.fingerprint = Some(fingerprint);
        if let Some(digest) = digest {
            let meets_goal = self.meets_goal();
            let mut evidence = Evidence::default();
            for decided in self.memory.candidates.iter().filter_map(|c| c.decided.as_ref()) {
                evidence.add(&decided.verdict, meets_goal);
            }
            let claims = &self.judgement.statement.claims;
            let refusals = check_claims(claims, digest, &evidence);
            // Prose is about the whole session: it is looked at with the first proposal, and counts where no typed claim
            // holds.
            let prose = std::mem::take(&mut self.judgement.statement.prose);
            let said = unproved(&prose);
            let over = !said.is_empty() && refusals.len() == claims.len();
            inspected.refusals.extend(refusals);
            if over {
                inspected.refusals.push(Refusal {
                    cause: Cause::ClaimWithoutEvidence,
                    detail: format!("its prose says `{}`, and names no record", said.join("`, `")),
                });
            }
        }
        Ok(inspected)
    }

    /// Compares with earlier candidates that have an outcome. Near ones count against agents only: a search varies
    /// numbers on purpose.
    fn repeat_of(&mut self, new: &Fingerprint) -> Result<Option<Refusal>, RunError> {
        let ids: Vec<String> = self
            .memory
            .candidates
            .iter()
            .filter(|past| past.proposed.role == Role::Candidate)
            .filter(|past| past.decided.is_some() || past.left_in_screening())
            .map(|past| past.proposed.candidate.clone())
            .collect();
        for id in &ids {
            if self.judgement.fingerprints.contains_key(id) {
                continue;
            }
            if let Some(past) = self.memory.candidate(id) {
                let files = self.ledger.objects().files(past.proposed.tree)?;
                if !files.is_empty() {
                    self.judgement
                        .fingerprints
                        .insert(id.clone(), Fingerprint::of(&files));
                }
            }
        }
        let is_search = self.writer.name() == WriterChoice::Search.to_string();
        let past: Vec<Past<'_>> = ids
            .iter()
            .filter_map(|id| {
                Some(Past {
                    candidate: id,
                    fingerprint: self.judgement.fingerprints.get(id)?,
                    dropped: self.memory.candidate(id)?.dropped().filter(|_| !is_search),
                })
            })
            .collect();
        Ok(check_repeat(new, &past))
    }

    /// Records what the gates found. Claims that do not hold are recorded and refuse nothing: only files count.
    pub(crate) fn refuse(&mut self, id: &str, inspected: Inspected) -> Result<(), RunError> {
        if let Some(fingerprint) = inspected.fingerprint {
            self.judgement.fingerprints.insert(id.to_owned(), fingerprint);
        }
        for refusal in inspected.refusals {
            let refused = !is_about_words(refusal.cause);
            self.progress.event(&Event::Note(&format!("{id}: {refusal}")));
            self.append(ProcessGate {
                code: refusal.cause.code().to_owned(),
                candidate: Some(id.to_owned()),
                refused,
                detail: refusal.detail,
                data: serde_json::Value::Null,
            })?;
        }
        Ok(())
    }

    /// Closes a direction of which three rounds in a row failed with one code.
    pub(crate) fn close_direction(&mut self, direction: &str, code: &str) -> Result<(), RunError> {
        let detail = format!("direction `{direction}` failed with `{code}` in three rounds in a row");
        self.progress.event(&Event::Note(&detail));
        self.append(ProcessGate {
            code: Cause::RepeatedError.code().to_owned(),
            candidate: None,
            refused: false,
            detail,
            data: json!({ "closed": [direction], "failed": code }),
        })?;
        Ok(())
    }

    /// Steps down a rung: a new plan, or another family.
    pub(crate) fn descend(&mut self, rung: Rung) -> Result<(), RunError> {
        let rounds = self.memory.rounds_without_gain(None);
        let (closed, what) = match rung {
            Rung::Replan => (Vec::new(), "planned anew"),
            Rung::OtherFamily | Rung::Stop => (
                course::tried_since_gain(&self.memory),
                "every direction tried since the last gain is closed",
            ),
        };
        let detail = format!("{rounds} rounds without a gain: {what}");
        self.progress.event(&Event::Note(&detail));
        self.append(ProcessGate {
            code: Cause::Stall.code().to_owned(),
            candidate: None,
            refused: false,
            detail,
            data: json!({ "rung": rung, "rounds": rounds, "closed": closed }),
        })?;
        // With the rung on record: a crash between the two leaves the old plan standing, and no second descent.
        if rung == Rung::Replan && self.mechanisms.has(Mechanism::Plan) {
            self.replan()?;
        }
        Ok(())
    }
}

/// Whether a cause is about what a writer says rather than what it leaves.
fn is_about_words(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ClaimWithoutEvidence
            | Cause::UnknownEvidence
            | Cause::StaleEvidence
            | Cause::ClaimBeyondEvidence
    )
}

/// Why a folder that holds more than some readable files is refused.
fn refuse_oddity(oddity: &Oddity) -> Refusal {
    let cause = match oddity {
        Oddity::Link(_) | Oddity::Special(_) | Oddity::Unreadable(_) | Oddity::Missing => Cause::Link,
        Oddity::TooManyFiles | Oddity::TooLarge(_) | Oddity::TooDeep(_) | Oddity::BadName(_) => {
            Cause::TooLarge
        }
    };
    Refusal {
        cause,
        detail: oddity.to_string(),
    }
}
