//! Finds runs: by path, id or unique prefix.

use std::fs;
use std::path::{Path, PathBuf};

use crate::LEDGER_FILE;

/// Where runs lie, below the folder in which the tool was started.
pub const RUNS_DIR: &str = ".ksmith/runs";

/// Why no run was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nothing fits.
    #[error("no run `{wanted}`: it is no run folder, and no run in `{}` begins so", runs_dir.display())]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// Where it was looked for.
        runs_dir: PathBuf,
    },
    /// More than one run fits.
    #[error("`{wanted}` fits {} runs: {}", fits.len(), fits.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The runs that begin so.
        fits: Vec<String>,
    },
}

/// A run that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// Its folder.
    pub dir: PathBuf,
    /// Its id, if it was found by id or prefix; a path says nothing about which run is expected there.
    pub id: Option<String>,
}

/// Ids of all runs in `runs_dir`, in ascending order. A folder without a ledger is no run.
pub fn list(runs_dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(runs_dir).into_iter().flatten().flatten();
    let mut ids: Vec<String> = entries
        .filter(|entry| entry.path().join(LEDGER_FILE).is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    ids.sort();
    ids
}

/// Finds the run that `wanted` names: an id, a unique prefix of one, or the path of a run folder or its ledger.
pub fn resolve(runs_dir: &Path, wanted: &str) -> Result<FoundRun, ResolveError> {
    let ids = list(runs_dir);
    let found = |id: &String| FoundRun {
        dir: runs_dir.join(id),
        id: Some(id.clone()),
    };
    if let Some(id) = ids.iter().find(|id| *id == wanted) {
        return Ok(found(id));
    }
    let path = Path::new(wanted);
    if path.join(LEDGER_FILE).is_file() {
        return Ok(FoundRun {
            dir: path.to_owned(),
            id: None,
        });
    }
    if path.is_file()
        && path.file_name().is_some_and(|name| name == LEDGER_FILE)
        && let Some(parent) = path.parent()
    {
        return Ok(FoundRun {
            dir: parent.to_owned(),
            id: None,
        });
    }
    let fits: Vec<&String> = ids
        .iter()
        .filter(|id| !wanted.is_empty() && id.starts_with(wanted))
        .collect();
    match fits[..] {
        [id] => Ok(found(id)),
        [] => Err(ResolveError::NotFound {
            wanted: wanted.into(),
            runs_dir: runs_dir.into(),
        }),
        _ => Err(ResolveError::Ambiguous {
            wanted: wanted.into(),
            fits: fits.into_iter().cloned().collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_id_by_unique_prefix_and_by_path() {
        let folder = tempfile::tempdir().unwrap();
        for id in ["0801-softmax", "0802-softmax", "0802-softmax-b"] {
            fs::create_dir(folder.path().join(id)).unwrap();
            fs::write(folder.path().join(id).join(LEDGER_FILE), "").unwrap();
        }
        fs::create_dir(folder.path().join("0803-no-ledger")).unwrap();
        let id = |wanted: &str| resolve(folder.path(), wanted).map(|run| run.id);
        assert_eq!(id("0801"), Ok(Some("0801-softmax".into())));
        assert_eq!(
            id("0802-softmax"),
            Ok(Some("0802-softmax".into())),
            "a whole id wins over prefixes"
        );
        assert!(matches!(id("0802"), Err(ResolveError::Ambiguous { fits, .. }) if fits.len() == 2));
        assert!(matches!(id("0803"), Err(ResolveError::NotFound { .. })));
        assert!(matches!(id(""), Err(ResolveError::NotFound { .. })));
        let path = folder.path().join("0801-softmax/ledger.jsonl");
        assert_eq!(id(path.to_str().unwrap()), Ok(None));
    }
}
