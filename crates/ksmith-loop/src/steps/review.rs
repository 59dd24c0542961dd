//! Asks the reviewer, and records what it says and how it was asked.

use ksmith_agents::process::{Cause, without_comments};
use ksmith_agents::review::{
    Answer, Attempt, Docket, Finding, Occasion, Request, Review, Reviewer, Subject, Verdict, Weight,
};
use ksmith_ledger::lookup::{SourceFile, diff_sources};
use ksmith_ledger::{History, NextEdit, RaisedFinding, ReviewAttempt, ReviewDetail, Reviewed, Role, TreeRef};
use ksmith_task::Digest;
use serde_json::json;

use crate::memory::Candidacy;
use crate::session::Session;
use crate::{Event, RunError, Stage, course};

impl Session<'_> {
    /// Reviews a candidate that would be crowned.
    pub(crate) fn review_crown(&mut self, id: &str) -> Result<(), RunError> {
        self.stage(Stage::Review, Some(id));
        let Some(candidacy) = self.memory.candidate(id).cloned() else {
            return Err(self.contradiction(crate::memory::MemoryError::UnknownCandidate(id.to_owned())));
        };
        let docket = course::docket(&self.memory, &candidacy);
        if docket.is_spent() {
            let review = Review {
                verdict: Verdict::NotPassed(Cause::ReviewRoundsSpent),
                attempts: Vec::new(),
            };
            return self.record_review(Occasion::Crown, "", Some(&candidacy), &docket, &review);
        }
        let request = self.crown_request(&candidacy, &docket)?;
        let review = self.ask_reviewer(&request)?;
        self.record_review(Occasion::Crown, "", Some(&candidacy), &docket, &review)
    }

    /// Reviews the course of the run.
    pub(crate) fn review_course(&mut self, occasion: Occasion, mark: &str) -> Result<(), RunError> {
        self.stage(Stage::Review, None);
        let request = self.course_request(occasion, mark)?;
        let review = self.ask_reviewer(&request)?;
        self.record_review(occasion, mark, None, &Docket::default(), &review)
    }

    /// The reviewer works on a thread of its own, so that calls of its model can be recorded on the way.
    fn ask_reviewer(&mut self, request: &Request) -> Result<Review, RunError> {
        self.with_reviewer(|reviewer| reviewer.review(request))
    }

    /// Has the reviewer do something; whatever it wants recorded on the way is.
    pub(crate) fn with_reviewer<T: Send>(
        &mut self,
        ask: impl FnOnce(&mut dyn Reviewer) -> T + Send,
    ) -> Result<T, RunError> {
        let Some(mut reviewer) = self.judgement.reviewer.take() else {
            return Err(RunError::Internal("a review without a reviewer".into()));
        };
        let answer = self.attended(|| ask(reviewer.as_mut()));
        self.judgement.reviewer = Some(reviewer);
        answer
    }

    /// What an answer about `source` must be bound to.
    pub(crate) fn subject(&self, source: Digest) -> Subject {
        let lock = self.guard.locked();
        Subject {
            task: lock.digest(),
            source,
            judge: lock.judge,
        }
    }

    fn crown_request(&self, candidacy: &Candidacy, docket: &Docket) -> Result<Request, RunError> {
        let proposed = &candidacy.proposed;
        let (parent, parent_tree) = match proposed.parents.first().and_then(|id| self.memory.candidate(id)) {
            Some(parent) => (parent.proposed.candidate.clone(), parent.proposed.tree),
            None => ("baseline".to_owned(), self.baseline_tree()?),
        };
        let before = self.bare_files(parent_tree)?;
        let after = self.bare_files(proposed.tree)?;
        let change: Vec<String> = diff_sources(&parent, &before, &proposed.candidate, &after)
            .into_iter()
            .map(|file| file.unified)
            .collect();
        let mut evidence = candidacy
            .decided
            .as_ref()
            .map_or(json!({}), |decided| json!(decided.verdict));
        evidence["predicted"] = json!(proposed.predicted);
        let history = History::load(self.dir())?;
        let found = history.candidate(&proposed.candidate);
        let profile: Vec<String> = found
            .into_iter()
            .flat_map(|found| {
                let checked = found.checked.iter().flat_map(|checked| checked.findings.clone());
                let profiled = found
                    .profiled
                    .iter()
                    .flat_map(|profiled| profiled.findings.clone());
                checked.chain(profiled)
            })
            .collect();
        Ok(Request {
            occasion: Occasion::Crown,
            subject: self.subject(proposed.digest),
            candidate: Some(proposed.candidate.clone()),
            contract: self.visible_contract(),
            change: change.join("\n"),
            source: after.into_iter().map(|file| (file.path, file.text)).collect(),
            evidence,
            profile: profile.join("\n"),
            course: self.course_text(),
            known: docket.keys().map(str::to_owned).collect(),
            round: docket.round(),
            prose: proposed.hypothesis.clone(),
        })
    }

    fn course_request(&self, occasion: Occasion, mark: &str) -> Result<Request, RunError> {
        let champion = self.memory.champion();
        let (source, files) = match champion {
            Some(champion) => (champion.proposed.digest, self.bare_files(champion.proposed.tree)?),
            None => {
                let tree = self.baseline_tree()?;
                (tree.tree, self.bare_files(tree)?)
            }
        };
        let last = self.memory.candidates.last();
        Ok(Request {
            occasion,
            subject: self.subject(source),
            candidate: None,
            contract: self.visible_contract(),
            change: String::new(),
            source: files.into_iter().map(|file| (file.path, file.text)).collect(),
            evidence: json!({
                "goal": self.instance.task().contract().performance.goal.on(self.backend),
                "goal_met": self.meets_goal(),
                "champion": champion.map(|champion| &champion.proposed.candidate),
                "over_baseline": self.memory.over_baseline(),
                "code": mark,
                "direction": last.map(|last| &last.proposed.direction),
                "rounds_without_gain": self.memory.rounds_without_gain(None),
            }),
            profile: String::new(),
            course: self.course_text(),
            known: Vec::new(),
            round: 1,
            prose: String::new(),
        })
    }

    /// One line for each candidate that was judged: figures and codes, nobody's words.
    fn course_text(&self) -> String {
        let budget = self.memory.budget();
        // A step that was cut short and is begun anew says the same again.
        let spent = self.memory.spent_before_step;
        let mut lines = vec![format!(
            "spent: {:.0} of {:.0} s, {} of {} scorings, {:.2} of {:.2} USD",
            spent.wall_s, budget.wall_s, spent.candidates, budget.candidates, spent.cost_usd, budget.cost_usd
        )];
        for candidate in &self.memory.candidates {
            let proposed = &candidate.proposed;
            let decided = candidate
                .decided
                .as_ref()
                .map(|decided| decided.verdict.code.as_str());
            let Some(code) = candidate.dropped().or(decided) else {
                continue;
            };
            let gain = candidate
                .decided
                .as_ref()
                .and_then(|decided| decided.verdict.speedup)
                .map_or_else(String::new, |gain| {
                    format!(" {:.3} ({:.3} to {:.3})", gain.point, gain.lower, gain.upper)
                });
            lines.push(format!(
                "{} round {} direction {}: {code}{gain}",
                proposed.candidate, proposed.round, proposed.direction
            ));
        }
        lines.join("\n")
    }

    /// The expanded contract without its hidden part.
    pub(crate) fn visible_contract(&self) -> String {
        visible(&self.instance.task().full())
    }

    fn baseline_tree(&self) -> Result<TreeRef, RunError> {
        self.memory
            .opened
            .as_ref()
            .map(|opened| opened.baseline)
            .ok_or_else(|| RunError::Internal("a run without its first record".into()))
    }

    /// A tree's files without comments, which are a writer's prose.
    fn bare_files(&self, tree: TreeRef) -> Result<Vec<SourceFile>, RunError> {
        let files = self.ledger.objects().files(tree)?;
        Ok(files
            .into_iter()
            .map(|(path, bytes)| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let text = if path.ends_with(".toml") {
                    text.parse::<toml::Table>()
                        .map_or(text, |table| table.to_string())
                } else {
                    without_comments(&text)
                };
                SourceFile { path, text }
            })
            .collect())
    }

    fn record_review(
        &mut self,
        occasion: Occasion,
        mark: &str,
        candidacy: Option<&Candidacy>,
        docket: &Docket,
        review: &Review,
    ) -> Result<(), RunError> {
        let source = match candidacy {
            Some(candidacy) => candidacy.proposed.digest,
            None => match self.memory.champion() {
                Some(champion) => champion.proposed.digest,
                None => self.baseline_tree()?.tree,
            },
        };
        let answer = match &review.verdict {
            Verdict::Given(answer) => Some(answer),
            Verdict::NotPassed(_) => None,
        };
        let raised = answer.map_or_else(Vec::new, |answer| raised(answer, docket));
        let opinion = Opinion {
            occasion,
            mark,
            candidate: candidacy.map(|candidacy| candidacy.proposed.candidate.clone()),
            source,
            round: docket.round(),
            is_veto: !review.verdict.lets_pass(),
            outcome: review.verdict.name(),
            code: review.verdict.code(),
            raised,
            next: answer
                .and_then(|answer| answer.next.as_ref())
                .map(|next| NextEdit {
                    direction: next.direction.clone(),
                    edit: next.edit.clone(),
                }),
            data: serde_json::Value::Null,
            attempts: &review.attempts,
        };
        self.record_opinion(opinion)
    }

    /// Appends what a reviewer said, with every attempt to get it.
    pub(crate) fn record_opinion(&mut self, opinion: Opinion<'_>) -> Result<(), RunError> {
        let Some(reviewer) = self.judgement.reviewer.as_ref() else {
            return Err(RunError::Internal("a review without a reviewer".into()));
        };
        let identity = reviewer.identity().clone();
        let subject = self.subject(opinion.source);
        let objects = self.ledger.objects();
        let mut attempts = Vec::new();
        for attempt in opinion.attempts {
            attempts.push(ReviewAttempt {
                nonce: attempt.nonce.clone(),
                code: attempt.cause.map(|cause| cause.code().to_owned()),
                detail: attempt.detail.clone(),
                prompt: objects.put(attempt.prompt.as_bytes())?,
                said: objects.put(&attempt.said)?,
                ms: attempt.ms,
            });
        }
        let text = attempts.last().map(|attempt| attempt.said);
        let findings = opinion
            .raised
            .iter()
            .map(|raised| format!("{} at {}: {}", raised.key, raised.location, raised.text))
            .collect();
        let shown = format!(
            "review ({}){}: {}{}",
            opinion.occasion.name(),
            opinion
                .candidate
                .as_ref()
                .map_or_else(String::new, |id| format!(" of {id}")),
            opinion.outcome,
            opinion.code.map_or_else(String::new, |code| format!(" ({code})"))
        );
        self.append(Reviewed {
            candidate: opinion.candidate,
            reviewer: identity.name,
            veto: opinion.is_veto,
            findings,
            text,
            detail: Some(Box::new(ReviewDetail {
                occasion: opinion.occasion.name().to_owned(),
                mark: opinion.mark.to_owned(),
                outcome: opinion.outcome.to_owned(),
                code: opinion.code.map(str::to_owned),
                vendor: identity.vendor.name().to_owned(),
                independence: self.judgement.independence_name(),
                round: u32::try_from(opinion.round).unwrap_or(u32::MAX),
                task: subject.task,
                source: subject.source,
                judge: subject.judge,
                attempts,
                raised: opinion.raised,
                next: opinion.next,
                data: opinion.data,
            })),
        })?;
        self.progress.event(&Event::Note(&shown));
        Ok(())
    }
}

/// What a reviewer said, ready to be recorded.
pub(crate) struct Opinion<'a> {
    pub(crate) occasion: Occasion,
    pub(crate) mark: &'a str,
    pub(crate) candidate: Option<String>,
    pub(crate) source: Digest,
    pub(crate) round: usize,
    pub(crate) is_veto: bool,
    pub(crate) outcome: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) raised: Vec<RaisedFinding>,
    pub(crate) next: Option<NextEdit>,
    /// A critique of a plan, whole.
    pub(crate) data: serde_json::Value,
    pub(crate) attempts: &'a [Attempt],
}

/// The findings of an answer, with those marked that stood on the line's docket already.
fn raised(answer: &Answer, docket: &Docket) -> Vec<RaisedFinding> {
    let batch = docket.clone().add(&answer.findings);
    let record = |finding: &Finding, repeated: bool| RaisedFinding {
        key: finding.key.clone(),
        blocking: finding.weight == Weight::Blocking,
        location: finding.location.clone(),
        text: finding.text.clone(),
        evidence: finding.evidence.clone(),
        repeated,
    };
    let fresh = batch.fresh.iter().map(|finding| record(finding, false));
    fresh
        .chain(batch.repeated.iter().map(|finding| record(finding, true)))
        .collect()
}

/// A contract without what is hidden from writers.
pub(crate) fn visible(contract: &str) -> String {
    fn strip(table: &mut toml::Table) {
        table.remove("hidden");
        table.iter_mut().for_each(|(_, value)| strip_value(value));
    }
    fn strip_value(value: &mut toml::Value) {
        match value {
            toml::Value::Table(table) => strip(table),
            toml::Value::Array(values) => values.iter_mut().for_each(strip_value),
            toml::Value::String(_)
            | toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_) => {}
        }
    }
    match contract.parse::<toml::Table>() {
        Ok(mut table) => {
            strip(&mut table);
            table.to_string()
        }
        // What cannot be read cannot be cleaned: nothing of it is shown.
        Err(_) => String::new(),
    }
}

/// Whether a role's candidates are reviewed at all: the yardsticks are ours.
pub(crate) fn is_reviewed(role: Role) -> bool {
    match role {
        Role::Candidate | Role::Seed => true,
        Role::FlagControl | Role::Baseline => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_shown() {
        let text = "name = \"x\"\n[hidden]\ncases = 7\n[[inputs]]\nname = \"a\"\nhidden = [\"wide(6)\"]\n";
        let shown = visible(text);
        assert!(shown.contains("name = \"a\""), "{shown}");
        assert!(!shown.contains("hidden") && !shown.contains("wide"), "{shown}");
        assert_eq!(visible("not = = toml"), "");
    }
}
