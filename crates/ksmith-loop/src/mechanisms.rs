//! Switches for the parts of a run that could be left out.
//!
//! A mechanism that cannot be switched off cannot be shown to help; `--mechanisms none` is the goal-only control.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of the loop that could be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// The audit of the task before the first candidate.
    Audit,
    /// The draft: six topics written and gated before any code.
    Draft,
    /// The plan: pairs of step and criterion, gated before any code.
    Plan,
    /// At most five tries without gain per direction, then the next one.
    Directions,
    /// The first candidate is the baseline's source under the best flags.
    FlagControl,
    /// Repeats and candidates with several ideas are refused, and a run that stalls is planned anew.
    Process,
    /// Hopeless candidates leave after the quick pass.
    Screen,
    /// A reviewer may veto a champion, criticises the plan, and is called when a run does not get on.
    Review,
    /// The run ends when nothing has gained for long.
    Plateau,
    /// Findings of earlier candidates are given to the writer.
    Digest,
    /// Measured configurations are kept for later runs, and earlier ones seed this one.
    Cache,
    /// The best of the quick pass are measured beside each other before the last scoring.
    Shortlist,
    /// The champion is confirmed once more at the end, against baseline and flag control.
    Final,
}

impl Mechanism {
    /// Every mechanism, in the order in which a run meets them.
    pub const ALL: [Self; 13] = [
        Self::Audit,
        Self::Draft,
        Self::Plan,
        Self::Directions,
        Self::FlagControl,
        Self::Process,
        Self::Screen,
        Self::Review,
        Self::Plateau,
        Self::Digest,
        Self::Cache,
        Self::Shortlist,
        Self::Final,
    ];

    /// The name used on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Draft => "draft",
            Self::Plan => "plan",
            Self::Directions => "directions",
            Self::FlagControl => "flag-control",
            Self::Process => "process",
            Self::Screen => "screen",
            Self::Review => "review",
            Self::Plateau => "plateau",
            Self::Digest => "digest",
            Self::Cache => "cache",
            Self::Shortlist => "shortlist",
            Self::Final => "final",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no mechanism.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mechanism; expected `all`, `none`, or a list of {names}", names = names())]
pub struct UnknownMechanism(String);

fn names() -> String {
    Mechanism::ALL.map(Mechanism::name).join(", ")
}

/// The mechanisms that are switched on; listed in the first record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mechanisms(BTreeSet<Mechanism>);

impl Mechanisms {
    /// Everything on: the default.
    pub fn all() -> Self {
        Self(Mechanism::ALL.into())
    }

    /// Everything off: the goal-only control.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether `mechanism` is on.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.0.contains(&mechanism)
    }

    /// Every mechanism and whether it is on, as the first record lists them.
    pub fn switches(&self) -> std::collections::BTreeMap<String, bool> {
        Mechanism::ALL
            .into_iter()
            .map(|mechanism| (mechanism.name().to_owned(), self.has(mechanism)))
            .collect()
    }

    /// Reads the first record's list; names that this version does not know are left out.
    pub fn from_switches(switches: &std::collections::BTreeMap<String, bool>) -> Self {
        let on = |mechanism: &Mechanism| switches.get(mechanism.name()).copied().unwrap_or(false);
        Self(Mechanism::ALL.into_iter().filter(on).collect())
    }

    /// The names of those that are on.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|mechanism| mechanism.name()).collect()
    }
}

impl Default for Mechanisms {
    fn default() -> Self {
        Self::all()
    }
}

impl fmt::Display for Mechanisms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.names().join(","))
    }
}

impl FromStr for Mechanisms {
    type Err = UnknownMechanism;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "all" => return Ok(Self::all()),
            "none" => return Ok(Self::none()),
            _ => {}
        }
        text.split(',')
            .map(str::trim)
            .map(|name| {
                Mechanism::ALL
                    .into_iter()
                    .find(|mechanism| mechanism.name() == name)
                    .ok_or_else(|| UnknownMechanism(name.to_owned()))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_survives_its_text_form() {
        for text in ["none", "draft,plan", "audit,screen,cache"] {
            assert_eq!(text.parse::<Mechanisms>().unwrap().to_string(), text);
        }
        assert_eq!("all".parse(), Ok(Mechanisms::all()));
        assert_eq!("plan , draft".parse(), "draft,plan".parse::<Mechanisms>());
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "draft,plann".parse::<Mechanisms>().unwrap_err();
        assert!(error.to_string().starts_with("`plann` is no mechanism"));
        assert!(error.to_string().contains("flag-control"));
    }

    #[test]
    fn names_are_as_serialised() {
        for mechanism in Mechanism::ALL {
            assert_eq!(serde_json::to_value(mechanism).unwrap(), mechanism.name());
        }
    }
}
