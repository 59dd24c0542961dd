//! One entry: a technique, a dead end, or an observation, with scope, effect and evidence.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something that helped, with its mechanism.
    Technique,
    /// Something that does not help, with its mechanism and what would change that.
    DeadEnd,
    /// Something that was seen once and not explained.
    Observation,
}

impl Kind {
    /// The name in files and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Technique => "technique",
            Self::DeadEnd => "dead-end",
            Self::Observation => "observation",
        }
    }
}

/// Whether an entry is still served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Yes.
    #[default]
    Active,
    /// No; it stays as a tombstone, and its id is not used again.
    Retired,
}

/// Where an entry holds. An empty list means anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// `cpu`, `cuda`.
    pub backends: Vec<String>,
    /// Families of tasks.
    pub families: Vec<String>,
    /// Names of tasks.
    pub operators: Vec<String>,
    /// Dtypes of the main tensors.
    pub dtypes: Vec<String>,
}

/// A measured effect: a ratio of times with its bounds, from one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Point estimate.
    pub point: f64,
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// A record that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The run.
    pub run: String,
    /// The candidate.
    pub candidate: String,
    /// Digest of the verdict.
    pub verdict: Digest,
    /// The device, in words.
    pub device: String,
}

/// Whether a piece of evidence can be seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceState {
    /// The run is at hand and shows it.
    Shown,
    /// The run is not at hand.
    Elsewhere,
    /// The run is at hand and does not show it, or its record is damaged.
    Struck,
}

/// Where an entry comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Source {
    /// Runs of this program; the evidence names them.
    OwnRuns,
    /// Something that can be read.
    Document {
        /// Title or address.
        text: String,
    },
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Version of the format: 1.
    pub schema: u32,
    /// Its id: lower-case words with dashes, never used twice.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Whether it is still served.
    #[serde(default)]
    pub status: Status,
    /// One line.
    pub title: String,
    /// The symptom or problem.
    pub problem: String,
    /// What to do.
    pub action: String,
    /// Why that helps or not; required of techniques and dead ends.
    #[serde(default)]
    pub mechanism: String,
    /// What would make a dead end worth another try; required of dead ends.
    #[serde(default)]
    pub would_retry_if: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Where it comes from.
    pub source: Source,
    /// Where it holds.
    #[serde(default)]
    pub scope: Scope,
    /// Its effect, where it was measured.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// Records that show it.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
}

impl Entry {
    /// What stands against admitting it; empty means that it may enter.
    pub fn defects(&self) -> Vec<String> {
        let mut defects = Vec::new();
        let mut want = |holds: bool, what: &str| {
            if !holds {
                defects.push(what.to_owned());
            }
        };
        let is_id = !self.id.is_empty()
            && self.id.len() <= 80
            && self
                .id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        want(self.schema == 1, "`schema` is not 1");
        want(is_id, "`id` is not of lower-case words with dashes");
        want(!self.title.trim().is_empty(), "`title` is empty");
        want(!self.problem.trim().is_empty(), "`problem` is empty");
        want(!self.action.trim().is_empty(), "`action` is empty");
        match self.kind {
            Kind::Technique => want(self.mechanism.len() >= 20, "a technique needs its `mechanism`"),
            Kind::DeadEnd => {
                want(self.mechanism.len() >= 20, "a dead end needs its `mechanism`");
                want(
                    !self.would_retry_if.trim().is_empty(),
                    "a dead end needs `would_retry_if`",
                );
            }
            Kind::Observation => {}
        }
        if let Some(Effect { point, lower, upper }) = self.effect {
            let ordered = 0.0 < lower && lower <= point && point <= upper && upper.is_finite();
            want(ordered, "`effect` is no ratio within its bounds");
            want(!self.evidence.is_empty(), "an effect needs `evidence`");
        }
        if self.source == Source::OwnRuns {
            want(!self.evidence.is_empty(), "an entry of own runs needs `evidence`");
        }
        defects
    }

    /// Independent runs that show it.
    pub fn runs(&self) -> usize {
        let mut runs: Vec<&str> = self
            .evidence
            .iter()
            .map(|evidence| evidence.run.as_str())
            .collect();
        runs.sort_unstable();
        runs.dedup();
        runs.len()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn entry(id: &str, kind: Kind) -> Entry {
        Entry {
            schema: 1,
            id: id.into(),
            kind,
            status: Status::Active,
            title: "Vector registers over the row".into(),
            problem: "One libm call per element bounds the loop.".into(),
            action: "Use a polynomial exp over whole vectors.".into(),
            mechanism: "Sixteen elements share one chain of multiply-adds.".into(),
            would_retry_if: "The row fits one register.".into(),
            tags: vec!["simd".into(), "exp".into()],
            source: Source::Document {
                text: "a paper".into(),
            },
            scope: Scope::default(),
            effect: None,
            evidence: Vec::new(),
        }
    }

    #[test]
    fn an_entry_needs_what_its_kind_needs() {
        for kind in [Kind::Technique, Kind::DeadEnd, Kind::Observation] {
            assert_eq!(entry("a-1", kind).defects(), Vec::<String>::new());
        }
        let mut dead_end = entry("a", Kind::DeadEnd);
        dead_end.would_retry_if.clear();
        dead_end.mechanism = "tried, flat".into();
        assert_eq!(
            dead_end.defects(),
            [
                "a dead end needs its `mechanism`",
                "a dead end needs `would_retry_if`"
            ]
        );
        let mut measured = entry("a", Kind::Observation);
        measured.effect = Some(Effect {
            point: 1.2,
            lower: 1.3,
            upper: 1.4,
        });
        assert_eq!(
            measured.defects(),
            [
                "`effect` is no ratio within its bounds",
                "an effect needs `evidence`"
            ]
        );
        assert!(!entry("Not An Id", Kind::Observation).defects().is_empty());
    }

    #[test]
    fn an_entry_survives_its_file() {
        let entry = entry("a", Kind::Technique);
        let text = toml::to_string(&entry).unwrap();
        assert_eq!(toml::from_str::<Entry>(&text).unwrap(), entry);
        assert!(toml::from_str::<Entry>(&text.replace("title", "titel")).is_err());
    }
}
