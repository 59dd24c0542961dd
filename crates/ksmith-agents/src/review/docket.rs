//! Findings of one line of candidates over its reviews: each stands once, and there are at most two batches.
//!
//! Guards against reviews that never end: a finding that is raised again is no news, and a line that was sent back
//! twice is not reviewed a third time.

use std::collections::BTreeSet;

use super::answer::Finding;

/// Batches of findings that one line of candidates may get.
pub const ROUNDS: usize = 2;

/// What of a batch is new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Findings that nobody has raised on this line before.
    pub fresh: Vec<Finding>,
    /// Findings that stood there already, under this key or word for word.
    pub repeated: Vec<Finding>,
}

/// The findings of a line so far.
#[derive(Debug, Clone, Default)]
pub struct Docket {
    keys: BTreeSet<String>,
    texts: BTreeSet<String>,
    rounds: usize,
}

impl Docket {
    /// Takes a batch up and says what of it is new.
    pub fn add(&mut self, findings: &[Finding]) -> Batch {
        let mut batch = Batch::default();
        for finding in findings {
            let text = plain(finding);
            let is_known = self.keys.contains(&finding.key) || self.texts.contains(&text);
            if is_known {
                batch.repeated.push(finding.clone());
            } else {
                batch.fresh.push(finding.clone());
            }
            self.keys.insert(finding.key.clone());
            self.texts.insert(text);
        }
        self.rounds += 1;
        batch
    }

    /// Whether no further review is held on this line.
    pub fn is_spent(&self) -> bool {
        self.rounds >= ROUNDS
    }

    /// Number of the next review, from 1.
    pub fn round(&self) -> usize {
        self.rounds + 1
    }

    /// Keys so far, for the next reviewer to use again.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }
}

/// Place and words without line numbers, case and punctuation: a fresh reviewer names the same thing otherwise.
fn plain(finding: &Finding) -> String {
    format!("{} {}", finding.location, finding.text)
        .to_lowercase()
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Weight;

    fn finding(key: &str, location: &str, text: &str) -> Finding {
        Finding {
            key: key.into(),
            weight: Weight::Blocking,
            location: location.into(),
            text: text.into(),
            evidence: "cols = 33".into(),
        }
    }

    #[test]
    fn a_finding_stands_once_under_its_key_or_its_words() {
        let mut docket = Docket::default();
        let first = docket.add(&[finding("odd-tail", "kernel.c:4", "Reads past the end.")]);
        assert_eq!((first.fresh.len(), first.repeated.len()), (1, 0));
        let second = docket.add(&[
            finding("odd-tail", "kernel.c:9", "Reads beyond the last row."),
            finding("tail-read", "kernel.c:9", "reads past the end"),
            finding("alias", "kernel.c:2", "Both pointers may be one."),
        ]);
        let keys = |findings: &[Finding]| findings.iter().map(|f| f.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&second.fresh), ["alias"]);
        assert_eq!(keys(&second.repeated), ["odd-tail", "tail-read"]);
    }

    #[test]
    fn there_are_two_rounds() {
        let mut docket = Docket::default();
        assert_eq!((docket.round(), docket.is_spent()), (1, false));
        docket.add(&[]);
        assert!(!docket.is_spent());
        docket.add(&[]);
        assert!(docket.is_spent());
    }
}
