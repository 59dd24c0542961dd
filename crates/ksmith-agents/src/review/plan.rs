//! Criticism of a draft or plan: what must change, what is a person's to decide.
//!
//! The critic speaks first, on the draft; then on each plan, up to three rounds. Changes are typed, so that a planner
//! that is no model can make them too.

use serde::{Deserialize, Serialize};

use super::answer::is_key;
use super::attempt::{Bound, Subject, check_binding, read_object};
use super::prompt::{Binding, Section};
use crate::process::Cause;

/// Rounds of planner and critic.
pub const PLAN_ROUNDS: usize = 3;

/// A change that a plan needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change", deny_unknown_fields)]
pub enum PlanChange {
    /// Try this direction before the others.
    First {
        /// Its name.
        direction: String,
        /// Why.
        why: String,
    },
    /// Leave this direction out.
    Drop {
        /// Its name.
        direction: String,
        /// Why.
        why: String,
    },
    /// Add a direction.
    Add {
        /// Its name: lower-case words with dashes.
        direction: String,
        /// The idea, one sentence.
        idea: String,
        /// What could go wrong.
        risk: String,
    },
}

/// Something that only a person can decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Short name.
    pub key: String,
    /// The question.
    pub question: String,
    /// The choices, at least two.
    pub options: Vec<String>,
    /// What hangs on it.
    pub trade_off: String,
}

/// What a critic says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Critique {
    /// Changes without which the plan should not be followed.
    pub required: Vec<PlanChange>,
    /// Advice.
    pub optional: Vec<String>,
    /// Decisions that block the start.
    pub decisions: Vec<Decision>,
}

/// A draft or plan under criticism.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRequest {
    /// What an answer must be bound to; the source is the text.
    pub subject: Subject,
    /// The expanded contract, without its hidden part.
    pub contract: String,
    /// The draft.
    pub draft: String,
    /// The plan; empty while only the draft is there.
    pub plan: String,
    /// Names of the directions with the gains that they promise, in the order of the plan or draft.
    pub directions: Vec<(String, f64)>,
    /// Decisions that a person has taken.
    pub decided: Vec<(String, String)>,
    /// Number of this round, from 1.
    pub round: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    task: String,
    source: String,
    judge: String,
    nonce: String,
    required: Vec<PlanChange>,
    optional: Vec<String>,
    decisions: Vec<Decision>,
}

impl Critique {
    /// Whether nothing is left to change or decide.
    pub fn is_settled(&self) -> bool {
        self.required.is_empty() && self.decisions.is_empty()
    }

    fn check(&self) -> Result<(), (Cause, String)> {
        let wrong = |detail: &str| Err((Cause::ReviewBadShape, detail.to_owned()));
        if self.required.len() > 16 || self.optional.len() > 16 || self.decisions.len() > 8 {
            return wrong("too many changes, remarks or decisions");
        }
        for change in &self.required {
            match change {
                PlanChange::Add {
                    direction,
                    idea,
                    risk,
                } => {
                    if !is_key(direction) || idea.trim().is_empty() || risk.trim().is_empty() {
                        return wrong("an added direction lacks name, idea or risk");
                    }
                }
                PlanChange::First { direction, why } | PlanChange::Drop { direction, why } => {
                    if direction.trim().is_empty() || why.trim().is_empty() {
                        return wrong("a change lacks direction or reason");
                    }
                }
            }
        }
        for decision in &self.decisions {
            if !is_key(&decision.key) || decision.question.trim().is_empty() || decision.options.len() < 2 {
                return wrong("a decision lacks key, question or two choices");
            }
        }
        Ok(())
    }
}

impl Bound for Critique {
    fn schema() -> serde_json::Value {
        let text = serde_json::json!({ "type": "string", "maxLength": 1000 });
        let change = |name: &str, fields: [&str; 2]| {
            let mut properties = serde_json::json!({ "change": { "const": name }, "direction": text });
            for field in fields.iter().filter(|field| !field.is_empty()) {
                properties[*field] = text.clone();
            }
            let required: Vec<&str> = ["change", "direction"]
                .into_iter()
                .chain(fields)
                .filter(|field| !field.is_empty())
                .collect();
            serde_json::json!({
                "type": "object", "additionalProperties": false, "required": required, "properties": properties,
            })
        };
        serde_json::json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["task", "source", "judge", "nonce", "required", "optional", "decisions"],
            "properties": {
                "task": { "type": "string" },
                "source": { "type": "string" },
                "judge": { "type": "string" },
                "nonce": { "type": "string" },
                "required": {
                    "type": "array",
                    "maxItems": 16,
                    "items": { "anyOf": [
                        change("first", ["why", ""]),
                        change("drop", ["why", ""]),
                        change("add", ["idea", "risk"]),
                    ] },
                },
                "optional": { "type": "array", "maxItems": 16, "items": text },
                "decisions": {
                    "type": "array",
                    "maxItems": 8,
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["key", "question", "options", "trade_off"],
                        "properties": {
                            "key": { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$" },
                            "question": text,
                            "options": { "type": "array", "minItems": 2, "maxItems": 8, "items": text },
                            "trade_off": text,
                        },
                    },
                },
            },
        })
    }

    fn read(bytes: &[u8], binding: &Binding) -> Result<Self, (Cause, String)> {
        let wire: Wire = read_object(bytes)?;
        check_binding(binding, [&wire.task, &wire.source, &wire.judge, &wire.nonce])?;
        let critique = Self {
            required: wire.required,
            optional: wire.optional,
            decisions: wire.decisions,
        };
        critique.check()?;
        Ok(critique)
    }
}

impl PlanRequest {
    pub(super) fn ask(&self) -> String {
        let what = if self.plan.is_empty() { "draft" } else { "plan" };
        let decided: Vec<String> = self
            .decided
            .iter()
            .map(|(key, choice)| format!("`{key}` is decided: {choice}"))
            .collect();
        let directions: Vec<&str> = self.directions.iter().map(|(name, _)| name.as_str()).collect();
        format!(
            "You criticise the {what} of work on a compute kernel before any code is written; this is round {} of at \
             most {PLAN_ROUNDS}. `required` holds changes without which it should not be followed: put a direction \
             first, drop one, or add one. `decisions` holds what only a person can decide; each blocks the start, so \
             name none that the contract settles. Empty lists mean that you agree. Directions now: {}. {}",
            self.round,
            directions.join(", "),
            decided.join(". ")
        )
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        vec![
            Section::new("Contract", "contract.toml", &self.contract),
            Section::new("Draft", "draft.md", &self.draft),
            Section::new("Plan", "plan.md", &self.plan),
        ]
    }
}

#[cfg(test)]
mod tests {
    use ksmith_task::Digest;
    use serde_json::{Value, json};

    use super::*;

    fn critique(required: Value, decisions: Value) -> Result<Critique, (Cause, String)> {
        let binding = Binding {
            task: Digest::of(b"t"),
            source: Digest::of(b"s"),
            judge: Digest::of(b"j"),
            nonce: "0f".repeat(16),
        };
        let text = json!({
            "task": binding.task, "source": binding.source, "judge": binding.judge, "nonce": binding.nonce,
            "required": required, "optional": [], "decisions": decisions,
        });
        Critique::read(text.to_string().as_bytes(), &binding)
    }

    #[test]
    fn changes_and_decisions_are_typed() {
        let required = json!([
            { "change": "first", "direction": "tiles", "why": "it bounds the rest" },
            { "change": "add", "direction": "packing", "idea": "Pack b once.", "risk": "memory" },
        ]);
        let found = critique(required, json!([])).unwrap();
        assert!(!found.is_settled());
        assert!(critique(json!([]), json!([])).unwrap().is_settled());
        let decision = json!([{ "key": "bits", "question": "May runs differ?", "options": ["yes", "no"], "trade_off": "speed" }]);
        assert!(!critique(json!([]), decision).unwrap().is_settled());
    }

    #[test]
    fn vague_changes_and_questions_without_choices_do_not_count() {
        for (required, decisions) in [
            (
                json!([{ "change": "improve", "direction": "x", "why": "y" }]),
                json!([]),
            ),
            (
                json!([{ "change": "drop", "direction": "x", "why": " " }]),
                json!([]),
            ),
            (
                json!([{ "change": "add", "direction": "Two Words", "idea": "x", "risk": "y" }]),
                json!([]),
            ),
            (
                json!([]),
                json!([{ "key": "bits", "question": "?", "options": ["yes"], "trade_off": "" }]),
            ),
        ] {
            assert_eq!(
                critique(required, decisions).unwrap_err().0,
                Cause::ReviewBadShape
            );
        }
    }
}
