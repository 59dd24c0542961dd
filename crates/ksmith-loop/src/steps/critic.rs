//! The critic of draft and plan: speaks first, up to three rounds; decisions that it leaves to a person block the start.

use ksmith_agents::review::{Critique, Occasion, PLAN_ROUNDS, PlanRequest};
use ksmith_task::Digest;

use super::review::Opinion;
use crate::planner::{self, DraftFacts};
use crate::session::Session;
use crate::{Event, RunError, course};

impl Session<'_> {
    /// Has draft and plan criticised and makes the changes. Says whether the plan may be written now; if not, a person
    /// was asked.
    pub(crate) fn criticise(&mut self, facts: &mut DraftFacts, draft: &str) -> Result<bool, RunError> {
        if self.judgement.reviewer.is_none() {
            return Ok(true);
        }
        // After a wait or a crash the changes of earlier rounds are made again, from the record.
        let mut held = course::critiques(&self.memory);
        for critique in &held {
            self.make_changes(facts, critique);
        }
        while held.len() < PLAN_ROUNDS {
            let critique = self.one_round(facts, draft, held.len() + 1)?;
            self.make_changes(facts, &critique);
            let open: Vec<_> = critique
                .decisions
                .iter()
                .filter(|decision| !course::decided(&self.memory).any(|(key, _)| key == decision.key))
                .cloned()
                .collect();
            for decision in &open {
                let text = format!(
                    "{} ({})",
                    one_line(&decision.question),
                    one_line(&decision.trade_off)
                );
                let id = format!("{}{}", course::PLAN_QUESTION, decision.key);
                let options = decision.options.iter().map(|option| one_line(option)).collect();
                self.put_question(&id, &text, options)?;
            }
            if !open.is_empty() {
                return Ok(false);
            }
            // The first round is about the draft: the plan gets at least one look.
            let is_settled = critique.required.is_empty() && !held.is_empty();
            held.push(critique);
            if is_settled {
                break;
            }
        }
        Ok(true)
    }

    fn one_round(&mut self, facts: &DraftFacts, draft: &str, round: usize) -> Result<Critique, RunError> {
        let plan = if round == 1 {
            String::new()
        } else {
            planner::plan(facts, &planner::plan_steps(facts))
        };
        let (document, text) = if round == 1 {
            ("draft", draft)
        } else {
            ("plan", plan.as_str())
        };
        let source = Digest::of(text.as_bytes());
        let request = PlanRequest {
            subject: self.subject(source),
            contract: self.visible_contract(),
            draft: draft.to_owned(),
            plan: plan.clone(),
            directions: facts
                .directions
                .iter()
                .map(|direction| (direction.name.clone(), direction.value))
                .collect(),
            decided: course::decided(&self.memory)
                .map(|(key, choice)| (key.to_owned(), choice.to_owned()))
                .collect(),
            round,
        };
        let held = self.with_reviewer(|reviewer| reviewer.plan(&request))?;
        let (outcome, data) = match &held.answer {
            Some(critique) if critique.is_settled() => ("pass", serde_json::json!(critique)),
            Some(critique) => ("direct", serde_json::json!(critique)),
            None => ("not-passed", serde_json::Value::Null),
        };
        self.record_opinion(Opinion {
            occasion: Occasion::Plan,
            mark: document,
            candidate: None,
            source,
            round,
            is_veto: held.answer.is_none(),
            outcome,
            code: held.cause().map(|cause| cause.code()),
            raised: Vec::new(),
            next: None,
            data,
            attempts: &held.attempts,
        })?;
        // A run whose reviewer gives no valid answer could crown nothing: better said before anything is spent.
        held.answer.ok_or_else(|| {
            let cause = held.attempts.last().map_or_else(String::new, |attempt| {
                format!(
                    "{}: {}",
                    attempt.cause.map_or("", |cause| cause.code()),
                    attempt.detail
                )
            });
            RunError::NoOpinion { document, cause }
        })
    }

    fn make_changes(&mut self, facts: &mut DraftFacts, critique: &Critique) {
        let before: Vec<String> = facts
            .directions
            .iter()
            .map(|direction| direction.name.clone())
            .collect();
        for refused in planner::apply(&mut facts.directions, &critique.required) {
            self.progress.event(&Event::Note(&format!(
                "the critic's change is not made: {refused}"
            )));
        }
        for name in before {
            if !facts.directions.iter().any(|direction| direction.name == name) {
                facts.left_out.push((name, "the critic leaves it out".to_owned()));
            }
        }
    }
}

/// Foreign text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
