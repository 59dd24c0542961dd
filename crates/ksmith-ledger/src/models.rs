//! The account of model calls, folded from records.
//!
//! A call stands in the record twice: before it is sent, and before its answer is complete at the client. What was sent
//! and never answered (the process died in between) counts at its upper bound, so that no cost is lost.

use std::collections::BTreeMap;

use crate::{ModelCall, ModelSent};

/// Calls to models, folded from records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelAccount {
    settled: ModelTotals,
    open: BTreeMap<String, ModelSent>,
    since_step: Vec<ModelCall>,
    last: u64,
}

/// What model calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelTotals {
    /// Calls sent.
    pub calls: u64,
    /// Tokens read, cached ones included.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// The part of the dollars that is an upper bound, because nobody told what was used.
    pub estimated_usd: f64,
}

impl ModelTotals {
    /// Tokens, input and output together.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

impl ModelAccount {
    /// Adds a call that is about to be sent.
    pub fn sent(&mut self, sent: &ModelSent) {
        self.number(&sent.call);
        self.open.insert(sent.call.clone(), sent.clone());
    }

    /// Adds a call that ended.
    pub fn ended(&mut self, call: &ModelCall) {
        self.number(&call.call);
        self.open.remove(&call.call);
        // An answer served from the record cost nothing, and its first record counts already.
        if call.served_from.is_some() {
            return;
        }
        let settled = &mut self.settled;
        settled.calls += 1;
        settled.tokens_in = settled.tokens_in.saturating_add(call.tokens_in);
        settled.tokens_out = settled.tokens_out.saturating_add(call.tokens_out);
        settled.cost_usd += call.cost_usd;
        if call.estimated {
            settled.estimated_usd += call.cost_usd;
        }
        self.since_step.push(call.clone());
    }

    /// Says that the step which the last calls belong to is on record: they are never asked again.
    pub fn step_ended(&mut self) {
        self.since_step.clear();
    }

    fn number(&mut self, call: &str) {
        let digits = call.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        self.last = self.last.max(digits.parse().unwrap_or(0));
    }

    /// What was used; calls without an answer count at their bound.
    pub fn totals(&self) -> ModelTotals {
        let mut totals = self.settled;
        for open in self.open.values() {
            totals.calls += 1;
            totals.tokens_in = totals.tokens_in.saturating_add(open.bound_tokens);
            totals.cost_usd += open.bound_usd;
            totals.estimated_usd += open.bound_usd;
        }
        totals
    }

    /// Calls that were sent and have no answer on record.
    pub fn unanswered(&self) -> usize {
        self.open.len()
    }

    /// Calls of the step that is not on record yet, oldest first: where the process died, a resumed step is served from
    /// these.
    pub fn since_step(&self) -> &[ModelCall] {
        &self.since_step
    }

    /// Number of the next call's id.
    pub fn next(&self) -> u64 {
        self.last + 1
    }
}

#[cfg(test)]
mod tests {
    use ksmith_task::Digest;

    use super::*;
    use crate::BlobRef;

    fn sent(id: &str) -> ModelSent {
        ModelSent {
            call: id.into(),
            role: "writer".into(),
            wire: "chat".into(),
            model: "m".into(),
            asked_model: None,
            changed: Vec::new(),
            key: Digest::of(b"key"),
            request: BlobRef {
                blob: Digest::of(b""),
                bytes: 0,
            },
            bound_tokens: 1000,
            bound_usd: 0.5,
        }
    }

    fn ended(id: &str, served_from: Option<&str>) -> ModelCall {
        let call = serde_json::json!({"model": "m", "tokens_in": 10, "tokens_out": 2, "cost_usd": 0.1, "ms": 1.0,
            "call": id, "served_from": served_from});
        serde_json::from_value(call).unwrap()
    }

    #[test]
    fn a_call_without_an_answer_counts_at_its_bound() {
        let mut account = ModelAccount::default();
        account.sent(&sent("m0001"));
        assert_eq!(
            (account.totals().cost_usd, account.totals().tokens()),
            (0.5, 1000)
        );
        account.ended(&ended("m0001", None));
        account.sent(&sent("m0002"));
        let totals = account.totals();
        assert_eq!(
            (totals.calls, totals.tokens(), account.unanswered()),
            (2, 1012, 1)
        );
        assert!((totals.cost_usd - 0.6).abs() < 1e-12 && (totals.estimated_usd - 0.5).abs() < 1e-12);
        assert_eq!(account.next(), 3);
    }

    #[test]
    fn an_answer_from_the_record_is_not_paid_twice_nor_served_twice() {
        let mut account = ModelAccount::default();
        account.ended(&ended("m0001", None));
        account.ended(&ended("m0002", Some("m0001")));
        assert_eq!((account.totals().calls, account.next()), (1, 3));
        assert_eq!(account.since_step().len(), 1);
        account.step_ended();
        assert!(account.since_step().is_empty());
        assert_eq!(account.totals().calls, 1);
    }

    #[test]
    fn calls_of_older_ledgers_have_no_id_and_count_all_the_same() {
        let mut account = ModelAccount::default();
        account.ended(&ended("", None));
        assert_eq!((account.totals().calls, account.next()), (1, 1));
    }
}
