//! `proposal.toml`: the one idea behind a candidate, in the writer's words. It never decides anything.

use serde::Deserialize;

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
}

/// The file as an agent finds it.
pub(crate) const TEMPLATE: &str = r#"# The one idea behind this candidate. Fill it in before you finish or submit.
# hypothesis = "rows fit the first cache, so one pass with vector loads halves the time"
# predicted_gain = 1.4        # over the champion, as a ratio of times; above 1 is faster
# direction = "vectorise"     # a short name; candidates of one direction share it
# parent = "c0007"            # the candidate that you started from, if not the champion
"#;

impl Default for ProposalNote {
    fn default() -> Self {
        Self {
            hypothesis: "the writer states none".to_owned(),
            predicted_gain: None,
            direction: "unnamed".to_owned(),
            parent: None,
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
