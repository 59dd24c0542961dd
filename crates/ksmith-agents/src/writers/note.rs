//! `proposal.toml`: the one idea behind a candidate, in the writer's words. It never decides anything.

use serde::Deserialize;

use crate::process::{Claim, Claimed};

/// Most claims kept.
const CLAIMS: usize = 8;
/// Longest name of a record kept, in characters.
const EVIDENCE: usize = 80;
/// Longest hypothesis kept, in characters.
const HYPOTHESIS: usize = 300;
/// Longest name of a direction, in characters.
const DIRECTION: usize = 60;

/// What a writer says about its candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposalNote {
    /// The one idea, in a sentence.
    pub hypothesis: String,
    /// Predicted gain over the champion as a ratio of times; above 1 is faster.
    pub predicted_gain: Option<f64>,
    /// The direction that it belongs to.
    pub direction: String,
    /// Id of the candidate that it started from.
    pub parent: Option<String>,
    /// What it claims of these files, each with the record that is to show it.
    pub claims: Vec<Claim>,
    /// What is wrong with the file, one sentence each; the defaults stand in.
    pub findings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    hypothesis: Option<String>,
    predicted_gain: Option<f64>,
    direction: Option<String>,
    parent: Option<String>,
    #[serde(default)]
    claim: Vec<WrittenClaim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClaim {
    what: String,
    ratio: Option<f64>,
    evidence: Option<String>,
}

/// The file as an agent finds it.
pub(crate) const TEMPLATE: &str = r#"# The one idea behind this candidate. Fill it in before you finish or submit.
# hypothesis = "rows fit the first cache, so one pass with vector loads halves the time"
# predicted_gain = 1.4        # over the champion, as a ratio of times; above 1 is faster
# direction = "vectorise"     # a short name; candidates of one direction share it
# parent = "c0007"            # the candidate that you started from, if not the champion
# [[claim]]                   # only what a verdict of this run shows: `correct`, `faster` with its ratio, or `done`
# what = "done"
# evidence = "..."            # the verdict's hash, as the brief names it
"#;

impl Default for ProposalNote {
    fn default() -> Self {
        Self {
            hypothesis: "the writer states none".to_owned(),
            predicted_gain: None,
            direction: "unnamed".to_owned(),
            parent: None,
            claims: Vec::new(),
            findings: Vec::new(),
        }
    }
}

impl ProposalNote {
    /// Reads the file's text; whatever is missing or wrong is a finding.
    pub fn parse(text: Option<&[u8]>) -> Self {
        let mut note = Self::default();
        let Some(text) = text else {
            note.findings.push("`proposal.toml` is missing".into());
            return note;
        };
        let written: Written = match toml::from_str(&String::from_utf8_lossy(text)) {
            Ok(written) => written,
            Err(error) => {
                let cause = one_line(error.message(), 120);
                note.findings
                    .push(format!("`proposal.toml` cannot be read: {cause}"));
                return note;
            }
        };
        match written.hypothesis.map(|text| one_line(&text, HYPOTHESIS)) {
            Some(hypothesis) if !hypothesis.is_empty() => note.hypothesis = hypothesis,
            Some(_) | None => note.findings.push("`proposal.toml` states no hypothesis".into()),
        }
        match written.direction.map(|text| one_line(&text, DIRECTION)) {
            Some(direction) if !direction.is_empty() => note.direction = direction,
            Some(_) | None => note.findings.push("`proposal.toml` names no direction".into()),
        }
        match written.predicted_gain {
            Some(gain) if gain.is_finite() && gain > 0.0 => note.predicted_gain = Some(gain),
            Some(gain) => note
                .findings
                .push(format!("`predicted_gain = {gain}` is no ratio of times")),
            None => {}
        }
        for claim in written.claim.into_iter().take(CLAIMS) {
            let claimed = match (claim.what.as_str(), claim.ratio) {
                ("correct", None) => Claimed::Correct,
                ("faster", Some(ratio)) if ratio.is_finite() && ratio > 0.0 => Claimed::Faster { ratio },
                ("done", None) => Claimed::Done,
                _ => {
                    let what = one_line(&claim.what, DIRECTION);
                    note.findings.push(format!(
                        "`{what}` is no claim: `correct`, `faster` with `ratio`, or `done`"
                    ));
                    continue;
                }
            };
            note.claims.push(Claim {
                claimed,
                evidence: claim.evidence.map(|text| one_line(&text, EVIDENCE)),
            });
        }
        note.parent = written
            .parent
            .map(|text| one_line(&text, 20))
            .filter(|parent| !parent.is_empty());
        note
    }
}

/// A text without line breaks and control characters, shortened.
fn one_line(text: &str, most: usize) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most)
        .collect();
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_in_template_is_one_hypothesis() {
        let text = TEMPLATE
            .replace("# hypothesis", "hypothesis")
            .replace("# predicted", "predicted")
            .replace("# direction", "direction");
        let note = ProposalNote::parse(Some(text.as_bytes()));
        assert!(note.hypothesis.starts_with("rows fit"));
        assert_eq!(
            (note.predicted_gain, note.direction.as_str()),
            (Some(1.4), "vectorise")
        );
        assert!(note.findings.is_empty(), "{:?}", note.findings);
    }

    #[test]
    fn claims_are_typed_and_others_are_findings() {
        let head = "hypothesis = \"h\"\ndirection = \"d\"\n";
        let claim = |rest: &str| ProposalNote::parse(Some(format!("{head}[[claim]]\n{rest}").as_bytes()));
        let faster = claim("what = \"faster\"\nratio = 1.4\nevidence = \"ab12\"");
        assert_eq!(faster.claims[0].claimed, Claimed::Faster { ratio: 1.4 });
        assert_eq!(faster.claims[0].evidence.as_deref(), Some("ab12"));
        assert!(faster.findings.is_empty());
        assert_eq!(claim("what = \"done\"").claims[0].claimed, Claimed::Done);
        for wrong in [
            "what = \"best\"",
            "what = \"faster\"",
            "what = \"faster\"\nratio = -1.0",
        ] {
            let note = claim(wrong);
            assert_eq!((note.claims.len(), note.findings.len()), (0, 1), "{wrong}");
        }
    }

    #[test]
    fn missing_wrong_and_hostile_notes_are_findings() {
        assert_eq!(ProposalNote::parse(None).findings.len(), 1);
        assert_eq!(ProposalNote::parse(Some(TEMPLATE.as_bytes())).findings.len(), 2);
        assert_eq!(
            ProposalNote::parse(Some(b"verdict = \"accept\"")).findings.len(),
            1
        );
        let note = ProposalNote::parse(Some(
            b"hypothesis = \"a\\u001b[31m\\nb\"\ndirection = \"d\"\npredicted_gain = -1.0",
        ));
        assert_eq!(note.hypothesis, "a [31m b");
        assert_eq!((note.predicted_gain, note.findings.len()), (None, 1));
    }
}
