//! Steps that ask the judge: audit, baseline, quick pass, full pass, promotion, last confirmation.

use ksmith_ledger::{
    BenchStage, Benched, Confirmed, Decided, Decision, Demoted, Entry, Note, Promoted, Proposed, Screened,
    Verdict,
};
use ksmith_task::Candidate;

use crate::arena::{Evidence, Promise};
use crate::memory::{BASELINE, MemoryError};
use crate::session::Session;
use crate::{Event, RunError, Stage, Stop};

impl Session<'_> {
    pub(crate) fn audit(&mut self) -> Result<(), RunError> {
        self.stage(Stage::Audit, None);
        let audit = self.arena.audit()?;
        let (passed, findings) = (audit.passed, audit.findings.clone());
        self.append(audit)?;
        if passed {
            Ok(())
        } else {
            Err(RunError::Audit { findings })
        }
    }

    /// Proves and measures the baseline; its figures stand in the draft, its correctness in the record.
    pub(crate) fn measure_baseline(&mut self) -> Result<(), RunError> {
        self.stage(Stage::Baseline, Some(BASELINE));
        let baseline = self.baseline();
        self.promise(Promise::Screen)?;
        let evidence = self.arena.baseline(&baseline)?;
        self.append_commitments()?;
        let verdict = evidence.verdict;
        match verdict.verdict {
            Decision::Reject if verdict.speedup.is_none() => {
                return Err(RunError::Usage {
                    what: format!("the task's baseline fails its own judge: {}", verdict.code),
                    fix:
                        "Correct the baseline or the contract; `ksmith lint TASK --audit` shows the evidence."
                            .into(),
                });
            }
            Decision::Error => return Err(cannot_judge(&verdict)),
            Decision::Accept | Decision::Revise | Decision::Reject | Decision::Ambiguous => {}
        }
        let mut benched = None;
        for entry in evidence.records {
            match entry {
                Entry::Benched(found) if found.candidate == BASELINE => benched = Some(found),
                other => {
                    self.append(other)?;
                }
            }
        }
        // Last, because it is the record by which the memory knows that this step is done.
        self.append(benched.unwrap_or_else(|| bare_bench(&verdict)))?;
        Ok(())
    }

    pub(crate) fn screen(&mut self, id: &str) -> Result<(), RunError> {
        self.stage(Stage::Screen, Some(id));
        let candidacy = self.candidacy(id)?;
        let digest = candidacy.digest;
        let configuration = candidacy.hypothesis.clone();
        if let Some(code) = self.refused_unseen(&candidacy) {
            self.append(Screened {
                candidate: Some(id.to_owned()),
                digest,
                configuration,
                kept: false,
                code: Some(code),
                ratio: None,
                ms: 0.0,
            })?;
            return Ok(());
        }
        let entrant = self.entrant_by_id(id)?;
        let field = self.field(id)?;
        self.promise(Promise::Screen)?;
        let screening = self.arena.screen(&entrant, &field)?;
        self.append_commitments()?;
        if !screening.digest.is_empty() {
            crate::lessons::keep(self.dir(), id, &screening.digest);
            self.lessons.insert(id.to_owned(), screening.digest.clone());
        }
        self.progress.event(&Event::Screened {
            candidate: id,
            hypothesis: &configuration,
            kept: screening.kept,
            code: screening.code.as_deref(),
            ratio: screening.ratio,
        });
        self.append(Screened {
            candidate: Some(id.to_owned()),
            digest,
            configuration,
            kept: screening.kept,
            code: screening.code,
            ratio: screening.ratio,
            ms: screening.ms,
        })?;
        Ok(())
    }

    /// Refusals that need no judge: a folder that is no candidate, and bytes that were tried before.
    fn refused_unseen(&self, proposed: &Proposed) -> Option<String> {
        let seen = self.memory.candidates.iter().any(|other| {
            other.proposed.candidate < proposed.candidate && other.proposed.digest == proposed.digest
        });
        if seen {
            return Some("policy/duplicate".into());
        }
        let folder = self.dir().join("candidates").join(&proposed.candidate);
        match Candidate::load(&folder) {
            Err(_) if folder.exists() => Some("policy/manifest".into()),
            Err(_) | Ok(_) => None,
        }
    }

    pub(crate) fn score(&mut self, id: &str) -> Result<(), RunError> {
        self.stage(Stage::Score, Some(id));
        let candidacy = self.candidacy(id)?;
        let entrant = self.entrant_by_id(id)?;
        let field = self.field(id)?;
        let champion = field.champion.as_ref().map(|champion| champion.id.clone());
        self.promise(Promise::Score)?;
        let evidence = self.arena.score(&entrant, &field)?;
        let (verdict, alpha) = (evidence.verdict.clone(), evidence.alpha);
        self.append_evidence(evidence)?;
        if accepts(&verdict) {
            // The judge's full pass ends with its own confirmation; the promotion rests on this record.
            self.append(Confirmed {
                candidate: id.to_owned(),
                verdict_digest: verdict.digest(),
                attempt: self.memory.confirmations + 1,
                alpha,
                reason: "confirmed with new processes, secrets and order".into(),
                verdict: verdict.clone(),
            })?;
        }
        self.progress.event(&Event::Judged {
            candidate: id,
            hypothesis: &candidacy.hypothesis,
            verdict: &verdict,
        });
        self.append(Decided {
            candidate: id.to_owned(),
            verdict_digest: verdict.digest(),
            champion,
            reason: reason(&candidacy, &verdict),
            verdict,
        })?;
        Ok(())
    }

    /// By code alone: only a full pass that the judge accepted gets here.
    pub(crate) fn promote(&mut self, id: &str) -> Result<(), RunError> {
        let Some(decided) = self.memory.candidate(id).and_then(|found| found.decided.clone()) else {
            return Err(self.contradiction(MemoryError::UnknownCandidate(id.to_owned())));
        };
        let proposed = self.candidacy(id)?;
        let tree = proposed.tree;
        // Files and verdict must still be those that the gates and the reviewer saw.
        if decided.verdict.candidate != proposed.digest {
            return Err(self.contradiction(MemoryError::OtherFiles(id.to_owned())));
        }
        let previous = self
            .memory
            .champion()
            .map(|champion| champion.proposed.candidate.clone());
        self.append(Promoted {
            candidate: id.to_owned(),
            previous,
            verdict_digest: decided.verdict_digest,
            tree,
        })?;
        self.progress.event(&Event::Champion {
            candidate: id,
            over_baseline: decided.verdict.over_baseline,
        });
        Ok(())
    }

    /// By code alone: its last confirmation refused the champion, or did not repeat its gain.
    pub(crate) fn demote(&mut self, id: &str) -> Result<(), RunError> {
        let Some(last) = self.memory.finals_of_champion().next_back().cloned() else {
            return Err(self.contradiction(MemoryError::UnknownCandidate(id.to_owned())));
        };
        let champion = self
            .memory
            .promotions
            .iter()
            .rfind(|promoted| promoted.candidate == id)
            .and_then(|promoted| promoted.previous.clone());
        let next = match &champion {
            Some(champion) => format!("{champion} is champion again"),
            None => "there is no champion".to_owned(),
        };
        let reason = format!(
            "{id} is demoted: its last confirmation ended with {}; {next}",
            last.verdict.code
        );
        self.progress.event(&Event::Note(&reason));
        self.append(Demoted {
            candidate: id.to_owned(),
            champion,
            verdict_digest: last.verdict_digest,
            reason,
        })?;
        Ok(())
    }

    pub(crate) fn confirm(&mut self, id: &str, stop: Stop) -> Result<(), RunError> {
        if self.memory.stop.is_none() {
            if self.memory.shortlist.is_none() {
                self.progress.event(&Event::Stopped(stop));
            }
            self.append(Note {
                text: stop.sentence().to_owned(),
                data: serde_json::json!({ "stop": stop }),
            })?;
        }
        self.stage(Stage::Confirm, Some(id));
        let entrant = self.entrant_by_id(id)?;
        let field = self.field(id)?;
        let attempt = self.memory.confirmations + 1;
        self.promise(Promise::Score)?;
        let evidence = self.arena.confirm(&entrant, &field)?;
        let (verdict, alpha) = (evidence.verdict.clone(), evidence.alpha);
        self.append_evidence(evidence)?;
        let hypothesis = self.candidacy(id)?.hypothesis;
        self.progress.event(&Event::Judged {
            candidate: id,
            hypothesis: &hypothesis,
            verdict: &verdict,
        });
        self.append(Confirmed {
            candidate: id.to_owned(),
            verdict_digest: verdict.digest(),
            attempt,
            alpha,
            reason: format!("last confirmation: {}", verdict.code),
            verdict,
        })?;
        Ok(())
    }

    fn append_evidence(&mut self, evidence: Evidence) -> Result<(), RunError> {
        self.append_commitments()?;
        for entry in evidence.records {
            self.append(entry)?;
        }
        Ok(())
    }

    fn candidacy(&self, id: &str) -> Result<Proposed, RunError> {
        self.memory
            .candidate(id)
            .map(|candidacy| candidacy.proposed.clone())
            .ok_or_else(|| self.contradiction(MemoryError::UnknownCandidate(id.to_owned())))
    }
}

fn accepts(verdict: &Verdict) -> bool {
    match verdict.verdict {
        Decision::Accept => true,
        Decision::Revise | Decision::Reject | Decision::Ambiguous | Decision::Error => false,
    }
}

/// Why it is kept or dropped, with prediction and outcome side by side.
fn reason(proposed: &Proposed, verdict: &Verdict) -> String {
    let what = match verdict.verdict {
        Decision::Accept => "kept: confirmed faster than the champion",
        Decision::Revise => "revise: correct, and the gain is undecided",
        Decision::Reject => "dropped",
        Decision::Ambiguous => "undecided: the machine was too busy for a statement",
        Decision::Error => "undecided: the judge could not judge",
    };
    let measured = verdict.speedup.map_or_else(
        || "nothing measured".to_owned(),
        |speedup| {
            format!(
                "measured {:.3} ({:.3} to {:.3})",
                speedup.point, speedup.lower, speedup.upper
            )
        },
    );
    let predicted = proposed.predicted.map_or_else(
        || "no gain predicted".to_owned(),
        |gain| format!("predicted {gain:.2}"),
    );
    format!("{what} ({}); {predicted}, {measured}", verdict.code)
}

fn cannot_judge(verdict: &Verdict) -> RunError {
    let evidence = verdict
        .gates
        .last()
        .map(|gate| gate.evidence.to_string())
        .unwrap_or_default();
    RunError::Arena(crate::arena::ArenaError::Environment {
        what: format!("the baseline cannot be judged here: {} {evidence}", verdict.code),
        fix: "`ksmith doctor` shows what this machine lacks; on a noisy machine wait and resume.".into(),
    })
}

/// The baseline's measurement where the judge gave gates only.
fn bare_bench(verdict: &Verdict) -> Benched {
    Benched {
        candidate: BASELINE.into(),
        stage: BenchStage::Decision,
        champion: None,
        pairs: 0,
        sets: 0,
        over_champion: verdict.speedup,
        over_baseline: verdict.over_baseline,
        over_flag_control: None,
        control: None,
        confidence: 0.99,
        workloads: Vec::new(),
        times: Vec::new(),
        floor: Vec::new(),
        gates: verdict.gates.clone(),
        code: Some(verdict.code.clone()),
        samples: None,
        conditions: serde_json::Value::Null,
        ms: verdict.gates.iter().map(|gate| gate.ms).sum(),
    }
}
