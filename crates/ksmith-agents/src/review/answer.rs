//! A reviewer's verdict on a candidate: its shape, and the only reader of it.
//!
//! The reader takes exactly one JSON object with known, unrepeated fields and the binding of this very attempt. It
//! looks for nothing inside other text, so there is no first or last match to get wrong.

use serde::{Deserialize, Serialize};

use super::attempt::{Bound, check_binding, read_object};
use super::prompt::Binding;
use crate::process::Cause;

/// What a reviewer may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// No objection.
    Pass,
    /// No objection, and a direction for what comes next.
    Direct,
    /// An objection.
    Veto,
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It stands against the candidate.
    Blocking,
    /// It is worth knowing.
    Advice,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Short name of what is wrong, such as `odd-row-tail`; the same thing has the same key in every round.
    pub key: String,
    /// How much it weighs.
    pub weight: Weight,
    /// File and line, or the part of the contract.
    pub location: String,
    /// What is wrong, in a sentence or two.
    pub text: String,
    /// How to see it: an input, a shape, a line of evidence. A blocking finding must say.
    pub evidence: String,
}

/// What to try next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Next {
    /// A direction's name.
    pub direction: String,
    /// Exactly one edit.
    pub edit: String,
}

/// A valid verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The verdict.
    pub word: Word,
    /// The findings, one batch.
    pub findings: Vec<Finding>,
    /// What to try next.
    pub next: Option<Next>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    task: String,
    source: String,
    judge: String,
    nonce: String,
    verdict: Word,
    findings: Vec<Finding>,
    next: Option<Next>,
}

/// Findings of one answer.
const FINDINGS: usize = 32;
/// Characters of one text.
const TEXT: usize = 1000;

impl Bound for Answer {
    fn schema() -> serde_json::Value {
        let text = serde_json::json!({ "type": "string", "maxLength": TEXT });
        serde_json::json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["task", "source", "judge", "nonce", "verdict", "findings", "next"],
            "properties": {
                "task": { "type": "string" },
                "source": { "type": "string" },
                "judge": { "type": "string" },
                "nonce": { "type": "string" },
                "verdict": { "enum": ["pass", "direct", "veto"] },
                "findings": {
                    "type": "array",
                    "maxItems": FINDINGS,
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["key", "weight", "location", "text", "evidence"],
                        "properties": {
                            "key": { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$" },
                            "weight": { "enum": ["blocking", "advice"] },
                            "location": text, "text": text, "evidence": text,
                        },
                    },
                },
                "next": {
                    "anyOf": [
                        { "type": "null" },
                        {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["direction", "edit"],
                            "properties": { "direction": text, "edit": text },
                        },
                    ],
                },
            },
        })
    }

    fn read(bytes: &[u8], binding: &Binding) -> Result<Self, (Cause, String)> {
        let wire: Wire = read_object(bytes)?;
        check_binding(binding, [&wire.task, &wire.source, &wire.judge, &wire.nonce])?;
        let answer = Self {
            word: wire.verdict,
            findings: wire.findings,
            next: wire.next,
        };
        answer.check_texts()?;
        answer.check_sense()?;
        Ok(answer)
    }
}

impl Answer {
    /// Whether a finding stands against the candidate.
    pub fn objects(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.weight == Weight::Blocking)
    }

    fn check_texts(&self) -> Result<(), (Cause, String)> {
        let wrong = |detail: String| Err((Cause::ReviewBadShape, detail));
        if self.findings.len() > FINDINGS {
            return wrong(format!("more than {FINDINGS} findings"));
        }
        for (index, finding) in self.findings.iter().enumerate() {
            if !is_key(&finding.key) {
                return wrong(format!("finding {} has no proper key", index + 1));
            }
            if self.findings[..index]
                .iter()
                .any(|other| other.key == finding.key)
            {
                return wrong(format!("the key `{}` stands twice", finding.key));
            }
            if finding.text.trim().is_empty() {
                return wrong(format!("finding `{}` says nothing", finding.key));
            }
        }
        let texts = self
            .findings
            .iter()
            .flat_map(|finding| [&finding.location, &finding.text, &finding.evidence])
            .chain(self.next.iter().flat_map(|next| [&next.direction, &next.edit]));
        for text in texts {
            if text.chars().count() > TEXT {
                return wrong(format!("a text is longer than {TEXT} characters"));
            }
        }
        Ok(())
    }

    fn check_sense(&self) -> Result<(), (Cause, String)> {
        let wrong = |detail: &str| Err((Cause::ReviewContradiction, detail.to_owned()));
        let proven = |finding: &&Finding| {
            finding.weight == Weight::Blocking
                && !finding.evidence.trim().is_empty()
                && !finding.location.trim().is_empty()
        };
        match self.word {
            Word::Pass | Word::Direct if self.objects() => wrong("a blocking finding beside no objection"),
            Word::Direct if self.next.is_none() => wrong("`direct` without a direction"),
            Word::Veto if !self.findings.iter().any(|finding| proven(&finding)) => {
                wrong("`veto` without a blocking finding that has place and evidence")
            }
            Word::Pass | Word::Direct | Word::Veto => Ok(()),
        }
    }
}

/// `odd-row-tail`: lower-case words with dashes.
pub(super) fn is_key(key: &str) -> bool {
    key.len() <= 64
        && key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use ksmith_task::Digest;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn binding() -> Binding {
        Binding {
            task: Digest::of(b"t"),
            source: Digest::of(b"s"),
            judge: Digest::of(b"j"),
            nonce: "0f".repeat(16),
        }
    }

    fn pass() -> Value {
        let binding = binding();
        json!({
            "task": binding.task, "source": binding.source, "judge": binding.judge, "nonce": binding.nonce,
            "verdict": "pass", "findings": [], "next": null,
        })
    }

    fn with(change: impl FnOnce(&mut Value)) -> String {
        let mut value = pass();
        change(&mut value);
        value.to_string()
    }

    fn cause(text: &str) -> Option<Cause> {
        Answer::read(text.as_bytes(), &binding())
            .err()
            .map(|(cause, _)| cause)
    }

    fn finding(weight: &str, evidence: &str) -> Value {
        json!({ "key": "odd-tail", "weight": weight, "location": "kernel.c:4", "text": "Reads past the end.", "evidence": evidence })
    }

    #[test]
    fn one_whole_bound_object_is_a_verdict() {
        assert_eq!(cause(&pass().to_string()), None);
        assert_eq!(cause(&format!("\n {}\n\n", pass())), None);
        let veto = with(|v| {
            v["verdict"] = "veto".into();
            v["findings"] = json!([finding("blocking", "cols = 33")]);
        });
        assert_eq!(
            Answer::read(veto.as_bytes(), &binding()).unwrap().word,
            Word::Veto
        );
    }

    #[test]
    fn refusals_silence_and_verdicts_inside_other_text_do_not_count() {
        let whole = pass().to_string();
        for (text, expected) in [
            (String::new(), Cause::ReviewEmpty),
            (" \n\t".into(), Cause::ReviewEmpty),
            ("I cannot help with that request.".into(), Cause::ReviewNotJson),
            ("COMPLETE".into(), Cause::ReviewNotJson),
            (format!("Here it is:\n{whole}"), Cause::ReviewNotJson),
            (
                format!("{whole}\nThe template says {whole}"),
                Cause::ReviewNotJson,
            ),
            (format!("{whole}{whole}"), Cause::ReviewNotJson),
            (format!("```json\n{whole}\n```"), Cause::ReviewNotJson),
            (whole[..whole.len() - 1].to_owned(), Cause::ReviewNotJson),
            (format!("[{whole}]"), Cause::ReviewBadShape),
            ("null".into(), Cause::ReviewBadShape),
            ("\"pass\"".into(), Cause::ReviewBadShape),
            ("{}".into(), Cause::ReviewBadShape),
        ] {
            assert_eq!(cause(&text), Some(expected), "{text}");
        }
        assert_eq!(
            Answer::read(&[0xff, 0xfe, b'{'], &binding()).unwrap_err().0,
            Cause::ReviewNotJson
        );
    }

    #[test]
    fn a_field_that_is_repeated_unknown_missing_or_another_word_does_not_count() {
        let repeated = pass().to_string().replace(
            "\"verdict\":\"pass\"",
            "\"verdict\":\"veto\",\"verdict\":\"pass\"",
        );
        assert_eq!(cause(&repeated), Some(Cause::ReviewBadShape));
        for change in [
            |v: &mut Value| v["promote"] = true.into(),
            |v: &mut Value| v["verdict"] = "accept".into(),
            |v: &mut Value| v["verdict"] = "LGTM".into(),
            |v: &mut Value| {
                v.as_object_mut().unwrap().remove("nonce");
            },
            |v: &mut Value| v["findings"] = "none".into(),
            |v: &mut Value| {
                v["findings"] = json!([{ "key": "UPPER", "weight": "advice", "location": "", "text": "x", "evidence": "" }])
            },
        ] {
            assert_eq!(cause(&with(change)), Some(Cause::ReviewBadShape));
        }
    }

    #[test]
    fn an_answer_to_another_question_does_not_count() {
        for (field, expected) in [
            ("task", Cause::ReviewWrongTask),
            ("source", Cause::ReviewWrongSource),
            ("judge", Cause::ReviewWrongJudge),
            ("nonce", Cause::ReviewWrongNonce),
        ] {
            let other = with(|v| v[field] = Digest::of(b"other").to_string().into());
            assert_eq!(cause(&other), Some(expected));
            assert_eq!(cause(&with(|v| v[field] = "".into())), Some(expected));
        }
    }

    #[test]
    fn verdict_and_findings_must_agree() {
        for (word, findings) in [
            ("pass", json!([finding("blocking", "x")])),
            ("veto", json!([])),
            ("veto", json!([finding("advice", "x")])),
            ("veto", json!([finding("blocking", " ")])),
            ("direct", json!([])),
        ] {
            let text = with(|v| {
                v["verdict"] = word.into();
                v["findings"] = findings.clone();
            });
            assert_eq!(cause(&text), Some(Cause::ReviewContradiction), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_damage_of_a_byte_turns_a_veto_into_a_pass(at in 0usize..600, byte in any::<u8>()) {
            let mut veto = with(|v| {
                v["verdict"] = "veto".into();
                v["findings"] = json!([finding("blocking", "cols = 33")]);
            }).into_bytes();
            let at = at % veto.len();
            veto[at] = byte;
            if let Ok(answer) = Answer::read(&veto, &binding()) {
                prop_assert_eq!(answer.word, Word::Veto);
            }
        }

        #[test]
        fn no_text_without_the_number_is_a_verdict(text in ".{0,200}") {
            prop_assert!(Answer::read(text.as_bytes(), &binding()).is_err());
        }
    }
}
