//! Findings, and the scale on which a whole report stands.

use serde::{Deserialize, Serialize};

/// How a report stands. The derived order is from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Everything was looked at and nothing was found.
    Clean,
    /// Something is worth a look.
    Review,
    /// Something could not be looked at: an unknown opcode, a cut text, a missing number.
    Incomplete,
    /// The tool or the code failed.
    Error,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A fact that explains the code.
    Note,
    /// Worth a look.
    Review,
    /// The code cannot run or was refused.
    Error,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name `area/cause`, which is also the symptom under which experience is filed.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// Function or kernel.
    pub subject: String,
    /// Source line, or address of the loop, where known.
    pub place: Option<String>,
    /// What was seen, with numbers.
    pub evidence: String,
    /// What usually helps.
    pub advice: Option<String>,
}

impl Finding {
    pub(crate) fn new(id: &str, severity: Severity, subject: &str, evidence: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            severity,
            subject: subject.to_owned(),
            place: None,
            evidence: evidence.into(),
            advice: None,
        }
    }

    pub(crate) fn note(id: &str, subject: &str, evidence: impl Into<String>) -> Self {
        Self::new(id, Severity::Note, subject, evidence)
    }

    pub(crate) fn review(id: &str, subject: &str, evidence: impl Into<String>) -> Self {
        Self::new(id, Severity::Review, subject, evidence)
    }

    pub(crate) fn error(id: &str, subject: &str, evidence: impl Into<String>) -> Self {
        Self::new(id, Severity::Error, subject, evidence)
    }

    pub(crate) fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    pub(crate) fn advise(mut self, advice: &str) -> Self {
        self.advice = Some(advice.to_owned());
        self
    }
}

/// Findings, and what could not be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was found.
    pub findings: Vec<Finding>,
    /// What could not be looked at, in words.
    pub incomplete: Vec<String>,
}

impl Report {
    /// How the report stands.
    pub fn scale(&self) -> Scale {
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        match worst {
            Some(Severity::Error) => Scale::Error,
            _ if !self.incomplete.is_empty() => Scale::Incomplete,
            Some(Severity::Review) => Scale::Review,
            Some(Severity::Note) | None => Scale::Clean,
        }
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(crate) fn missing(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.incomplete.contains(&what) {
            self.incomplete.push(what);
        }
    }

    /// The finding with this name, if any.
    pub fn find(&self, id: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_of_anything_is_never_clean_and_an_error_outranks_it() {
        let mut report = Report::default();
        assert_eq!(report.scale(), Scale::Clean);
        report.push(Finding::note("x/y", "f", "a fact"));
        assert_eq!(report.scale(), Scale::Clean);
        report.push(Finding::review("x/z", "f", "a doubt"));
        assert_eq!(report.scale(), Scale::Review);
        report.missing("an opcode");
        report.missing("an opcode");
        assert_eq!((report.scale(), report.incomplete.len()), (Scale::Incomplete, 1));
        report.push(Finding::error("x/e", "f", "refused"));
        assert_eq!(report.scale(), Scale::Error);
    }
}
