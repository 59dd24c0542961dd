//! Reading the corpora.

use std::fs;
use std::path::{Path, PathBuf};

use ksmith_ledger::Gate;
use serde::Deserialize;

use crate::Failure;

/// What a naive evaluator says of a cheat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Naive {
    /// Accepted, and faster than the baseline.
    Wins,
    /// Accepted, not faster.
    Same,
    /// Not accepted.
    Fails,
    /// Never answers, or takes the evaluator with it.
    Hangs,
}

impl Naive {
    /// Whether it was taken for right; how fast it was depends on the load of the moment.
    pub(crate) fn accepted(self) -> bool {
        matches!(self, Self::Wins | Self::Same)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wins => "wins",
            Self::Same => "same",
            Self::Fails => "fails",
            Self::Hangs => "hangs",
        }
    }
}

/// Why a cheat does not win under the naive evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Why {
    /// Wrong on the naive evaluator's own input too: it stands for its kind, which wins where tolerances are wider.
    Crude,
    /// The naive evaluator runs boxed here, and the box refuses the call that the cheat lives on.
    Boxed,
    /// It attacks a part of a judge that the naive evaluator does not have, and computes nothing right itself.
    NoTarget,
    /// Its files or flags build nowhere but in the place that it hopes for.
    NotBuilt,
    /// It means to take the evaluator or the machine down, not to win.
    Destructive,
}

impl Why {
    pub(crate) const ALL: [Self; 5] = [
        Self::Crude,
        Self::Boxed,
        Self::NoTarget,
        Self::NotBuilt,
        Self::Destructive,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Crude => "crude",
            Self::Boxed => "boxed",
            Self::NoTarget => "no-target",
            Self::NotBuilt => "not-built",
            Self::Destructive => "destructive",
        }
    }

    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Crude => {
                "wrong on the naive evaluator's own input too; stands for its kind, which wins where tolerances are wider"
            }
            Self::Boxed => {
                "the naive evaluator runs boxed here, and the box refuses the call that the cheat lives on"
            }
            Self::NoTarget => {
                "attacks a part of a judge that the naive evaluator does not have, and computes nothing right itself"
            }
            Self::NotBuilt => "its files or flags build nowhere but in the place that it hopes for",
            Self::Destructive => "means to take the evaluator or the machine down, not to win",
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheatFile {
    schema: u32,
    task: String,
    r#type: String,
    family: String,
    mechanism: String,
    taxonomy: Vec<String>,
    gate: Gate,
    #[serde(default)]
    also: Vec<Gate>,
    #[serde(default)]
    full: bool,
    naive: Naive,
    why: Option<Why>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct HonestFile {
    schema: u32,
    task: String,
    r#type: String,
    why: String,
}

/// One cheat of the corpus.
#[derive(Debug, Clone)]
pub(crate) struct Cheat {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) target: Target,
    pub(crate) family: String,
    pub(crate) mechanism: String,
    pub(crate) taxonomy: Vec<String>,
    pub(crate) gate: Gate,
    /// Gates that may come first, as the scoring's secret has it.
    pub(crate) also: Vec<Gate>,
    /// Whether its gate speaks in a full scoring only.
    pub(crate) full: bool,
    pub(crate) naive: Naive,
    /// Why it is not accepted there.
    pub(crate) why: Option<Why>,
}

/// One honest candidate.
#[derive(Debug, Clone)]
pub(crate) struct Honest {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) target: Target,
    pub(crate) why: String,
}

/// The task instance that a candidate is for.
#[derive(Debug, Clone, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) task: String,
    pub(crate) types: String,
}

impl Target {
    /// The task's folder: a shipped task, or one of the red team's own.
    pub(crate) fn folder(&self) -> PathBuf {
        let shipped = Path::new("tasks").join(&self.task);
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        if here.join(&shipped).is_dir() {
            shipped
        } else {
            Path::new("redteam/tasks").join(&self.task)
        }
    }
}

fn folders(root: &Path, file: &str) -> Result<Vec<(String, PathBuf, String)>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let folder = entry?.path();
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(folder.join(file)).map_err(|error| format!("`{name}`: {error}"))?;
        found.push((name, folder, text));
    }
    found.sort();
    Ok(found)
}

pub(crate) fn cheats(root: &Path) -> Result<Vec<Cheat>, Failure> {
    folders(root, "cheat.toml")?
        .into_iter()
        .map(|(name, folder, text)| {
            let file: CheatFile = toml::from_str(&text).map_err(|error| format!("`{name}`: {error}"))?;
            if file.schema != 1 || file.taxonomy.is_empty() {
                return Err(
                    format!("`{name}`: expected schema 1 and at least one row of the taxonomy").into(),
                );
            }
            if file.naive.accepted() != file.why.is_none() {
                return Err(format!(
                    "`{name}`: `why` says why the naive evaluator does not accept a cheat, and stands there and nowhere else"
                )
                .into());
            }
            Ok(Cheat {
                name,
                folder,
                target: Target {
                    task: file.task,
                    types: file.r#type,
                },
                family: file.family,
                mechanism: file.mechanism,
                taxonomy: file.taxonomy,
                gate: file.gate,
                also: file.also,
                full: file.full,
                naive: file.naive,
                why: file.why,
            })
        })
        .collect()
}

pub(crate) fn honest(root: &Path) -> Result<Vec<Honest>, Failure> {
    folders(root, "honest.toml")?
        .into_iter()
        .map(|(name, folder, text)| {
            let file: HonestFile = toml::from_str(&text).map_err(|error| format!("`{name}`: {error}"))?;
            if file.schema != 1 {
                return Err(format!("`{name}`: expected schema 1").into());
            }
            Ok(Honest {
                name,
                folder,
                target: Target {
                    task: file.task,
                    types: file.r#type,
                },
                why: file.why,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn the_corpora_are_whole_and_every_row_of_the_taxonomy_exists() {
        let cheats = cheats(&root().join("redteam/cheats")).unwrap();
        let honest = honest(&root().join("redteam/honest")).unwrap();
        assert!(cheats.len() >= 80 && honest.len() >= 40);
        let known: BTreeSet<String> = (1..=37)
            .map(|row| format!("T{row}"))
            .chain((1..=38).map(|row| format!("C{row}")))
            .collect();
        // Every gate that can be removed has a cheat that names it.
        for gate in Gate::ALL {
            let named = cheats.iter().any(|cheat| cheat.gate == gate);
            assert!(named || gate == Gate::Slow, "no cheat names gate `{gate}`");
        }
        for cheat in &cheats {
            // Statistics, or a shape that only a full scoring draws.
            assert!(!cheat.full || cheat.gate >= Gate::Hidden, "`{}`", cheat.name);
            for row in &cheat.taxonomy {
                assert!(known.contains(row), "`{}` names row `{row}`", cheat.name);
            }
            assert!(
                root().join(cheat.target.folder()).join("task.toml").is_file(),
                "`{}`",
                cheat.name
            );
        }
    }
}
