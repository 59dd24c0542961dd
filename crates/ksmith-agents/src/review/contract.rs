//! Review of a contract before it is locked: what it leaves open, typed.
//!
//! A reviewer names at least three ambiguities, or says of each of the ten classes that it looked. It changes nothing;
//! each ambiguity gets a resolution by a person, recorded before the lock.

use serde::{Deserialize, Serialize};

use super::answer::is_key;
use super::attempt::{Bound, Subject, check_binding, read_object};
use super::prompt::{Binding, Section};
use crate::process::Cause;

/// Fewer ambiguities than this need a word on every class.
pub const LEAST_AMBIGUITIES: usize = 3;

/// Ambiguities of one answer.
const MOST: usize = 32;

/// One thing that a contract leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundAmbiguity {
    /// Short name, such as `rounding-of-halves`.
    pub key: String,
    /// One of the ten classes.
    pub class: String,
    /// The key of the contract that it is about, such as `outputs.y.rtol`.
    pub place: String,
    /// The question.
    pub question: String,
    /// At least two ways in which the contract can be read.
    pub readings: Vec<String>,
    /// What the reviewer would write.
    pub suggestion: String,
}

/// A reviewer's answer about a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContractAnswer {
    /// What is open.
    pub ambiguities: Vec<FoundAmbiguity>,
    /// Classes that were looked at.
    pub checked: Vec<String>,
}

/// A contract under review.
#[derive(Debug, Clone, PartialEq)]
pub struct ContractRequest {
    /// What an answer must be bound to; the source is the expanded contract.
    pub subject: Subject,
    /// The expanded contract, without its hidden part.
    pub contract: String,
    /// The reference's source.
    pub reference: String,
    /// Mechanical findings, one line each.
    pub lint: String,
    /// The ten classes with what holds as things stand.
    pub classes: Vec<ksmith_task::Ambiguity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    task: String,
    source: String,
    judge: String,
    nonce: String,
    ambiguities: Vec<FoundAmbiguity>,
    checked: Vec<String>,
}

/// Names of the ten classes.
fn classes() -> Vec<String> {
    ksmith_task::Class::ALL.into_iter().map(class_name).collect()
}

/// The name of a class as it stands in answers.
pub(super) fn class_name(class: ksmith_task::Class) -> String {
    serde_json::to_value(class)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

impl ContractAnswer {
    /// Classes with neither an ambiguity nor a look.
    pub fn unchecked(&self) -> Vec<String> {
        let seen = |class: &String| {
            self.checked.contains(class) || self.ambiguities.iter().any(|found| found.class == *class)
        };
        classes().into_iter().filter(|class| !seen(class)).collect()
    }
}

impl Bound for ContractAnswer {
    fn schema() -> serde_json::Value {
        let text = serde_json::json!({ "type": "string", "maxLength": 1000 });
        serde_json::json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["task", "source", "judge", "nonce", "ambiguities", "checked"],
            "properties": {
                "task": { "type": "string" },
                "source": { "type": "string" },
                "judge": { "type": "string" },
                "nonce": { "type": "string" },
                "ambiguities": {
                    "type": "array",
                    "maxItems": MOST,
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["key", "class", "place", "question", "readings", "suggestion"],
                        "properties": {
                            "key": { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$" },
                            "class": { "enum": classes() },
                            "place": text, "question": text, "suggestion": text,
                            "readings": { "type": "array", "minItems": 2, "maxItems": 8, "items": text },
                        },
                    },
                },
                "checked": { "type": "array", "items": { "enum": classes() } },
            },
        })
    }

    fn read(bytes: &[u8], binding: &Binding) -> Result<Self, (Cause, String)> {
        let wire: Wire = read_object(bytes)?;
        check_binding(binding, [&wire.task, &wire.source, &wire.judge, &wire.nonce])?;
        let answer = Self {
            ambiguities: wire.ambiguities,
            checked: wire.checked,
        };
        answer.check()?;
        Ok(answer)
    }
}

impl ContractAnswer {
    fn check(&self) -> Result<(), (Cause, String)> {
        let wrong = |detail: String| Err((Cause::ReviewBadShape, detail));
        let known = classes();
        if self.ambiguities.len() > MOST {
            return wrong(format!("more than {MOST} ambiguities"));
        }
        for (index, found) in self.ambiguities.iter().enumerate() {
            if !is_key(&found.key)
                || self.ambiguities[..index]
                    .iter()
                    .any(|other| other.key == found.key)
            {
                return wrong(format!("ambiguity {} has no proper key of its own", index + 1));
            }
            let filled = found.readings.iter().filter(|reading| !reading.trim().is_empty());
            if found.question.trim().is_empty() || filled.count() < 2 {
                return wrong(format!("`{}` has no question with two readings", found.key));
            }
            let texts = [&found.place, &found.question, &found.suggestion];
            if texts
                .into_iter()
                .chain(&found.readings)
                .any(|text| text.chars().count() > 1000)
            {
                return wrong(format!(
                    "a text of `{}` is longer than 1000 characters",
                    found.key
                ));
            }
        }
        let named = self
            .ambiguities
            .iter()
            .map(|found| &found.class)
            .chain(&self.checked);
        for class in named {
            if !known.contains(class) {
                return wrong(format!("`{class}` is none of the ten classes"));
            }
        }
        let unchecked = self.unchecked();
        if self.ambiguities.len() < LEAST_AMBIGUITIES && !unchecked.is_empty() {
            return Err((
                Cause::ReviewContradiction,
                format!(
                    "fewer than {LEAST_AMBIGUITIES} ambiguities, and no word on {}",
                    unchecked.join(", ")
                ),
            ));
        }
        Ok(())
    }
}

impl ContractRequest {
    pub(super) fn ask(&self) -> String {
        let classes: Vec<String> = self
            .classes
            .iter()
            .map(|found| {
                let name = class_name(found.class);
                format!("- `{name}`: {} Now: {}.", found.class.question(), found.answer)
            })
            .collect();
        format!(
            "You review the contract of a compute kernel before it is locked. List what it leaves open: places that \
             two careful readers would implement differently. You can change nothing. Name at least \
             {LEAST_AMBIGUITIES} ambiguities; if you find fewer, `checked` must name every class without one that you \
             looked at. The ten classes, with what holds as things stand:\n{}",
            classes.join("\n")
        )
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        vec![
            Section::new("Contract", "contract.toml", &self.contract),
            Section::new("Reference", "reference.txt", &self.reference),
            Section::new("Mechanical findings", "lint.txt", &self.lint),
        ]
    }
}

#[cfg(test)]
mod tests {
    use ksmith_task::Digest;
    use serde_json::{Value, json};

    use super::*;

    fn answer(ambiguities: Value, checked: Value) -> Result<ContractAnswer, (Cause, String)> {
        let binding = Binding {
            task: Digest::of(b"t"),
            source: Digest::of(b"s"),
            judge: Digest::of(b"j"),
            nonce: "0f".repeat(16),
        };
        let text = json!({
            "task": binding.task, "source": binding.source, "judge": binding.judge, "nonce": binding.nonce,
            "ambiguities": ambiguities, "checked": checked,
        });
        ContractAnswer::read(text.to_string().as_bytes(), &binding)
    }

    fn open(key: &str, class: &str) -> Value {
        json!({ "key": key, "class": class, "place": "outputs.y", "question": "Which?", "readings": ["a", "b"], "suggestion": "a" })
    }

    #[test]
    fn three_ambiguities_or_a_word_on_every_class() {
        let three = json!([open("a", "goal"), open("b", "ties"), open("c", "ties")]);
        assert_eq!(answer(three, json!([])).unwrap().unchecked().len(), 8);
        let all = json!(classes());
        assert_eq!(classes().len(), 10);
        assert!(answer(json!([]), all.clone()).is_ok());
        let nine = json!(classes()[1..].to_vec());
        assert!(answer(json!([open("a", "goal")]), nine.clone()).is_ok());
        let (cause, detail) = answer(json!([open("a", "ties")]), nine).unwrap_err();
        assert_eq!(cause, Cause::ReviewContradiction);
        assert!(detail.ends_with("no word on goal"), "{detail}");
    }

    #[test]
    fn questions_without_two_readings_and_unknown_classes_do_not_count() {
        let mut bad = open("a", "goal");
        bad["readings"] = json!(["a", " "]);
        for ambiguities in [
            json!([bad]),
            json!([open("a", "speed")]),
            json!([open("a", "goal"), open("a", "ties")]),
            json!([open("Not A Key", "goal")]),
        ] {
            assert_eq!(
                answer(ambiguities, json!(classes())).unwrap_err().0,
                Cause::ReviewBadShape
            );
        }
    }
}
