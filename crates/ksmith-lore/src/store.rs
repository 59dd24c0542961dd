//! The folder of entries: one file each, read whole, checked on the way in.

use std::fs;
use std::path::{Path, PathBuf};

use ksmith_ledger::{History, runs};

use crate::{Entry, EvidenceState, Kind, Status};

/// Why the library cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoreError {
    /// A file operation failed.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is no entry.
    #[error("`{}` is no entry: {detail}", path.display())]
    NoEntry {
        /// The file.
        path: PathBuf,
        /// Why not.
        detail: String,
    },
}

/// The library of one place.
#[derive(Debug, Clone)]
pub struct Lore {
    folder: PathBuf,
    runs: PathBuf,
    entries: Vec<Entry>,
}

/// What adding an entry came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merged {
    /// It is new.
    Added,
    /// It stood there; its evidence was added.
    Confirmed,
    /// It stood there with this evidence already.
    Known,
    /// Its id belongs to a retired entry.
    Retired,
}

impl Lore {
    /// The folder of entries, relative to the place where runs are made.
    pub const FOLDER: &str = ".ksmith/lore";

    /// Reads the library below `home`; a missing folder is an empty library.
    ///
    /// # Errors
    /// When a file cannot be read or is no entry.
    pub fn open(home: &Path) -> Result<Self, LoreError> {
        let folder = home.join(Self::FOLDER);
        let mut lore = Self {
            runs: home.join(runs::RUNS_DIR),
            entries: Vec::new(),
            folder,
        };
        let mut paths = Vec::new();
        match fs::read_dir(&lore.folder) {
            Ok(found) => {
                for entry in found {
                    let path = entry.map_err(io("list", &lore.folder))?.path();
                    if path.extension().is_some_and(|extension| extension == "toml") {
                        paths.push(path);
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io("list", &lore.folder)(error)),
        }
        paths.sort();
        for path in paths {
            let text = fs::read_to_string(&path).map_err(io("read", &path))?;
            let wrong = |detail: String| LoreError::NoEntry {
                path: path.clone(),
                detail,
            };
            let entry: Entry = toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
            let defects = entry.defects();
            if !defects.is_empty() {
                return Err(wrong(defects.join("; ")));
            }
            lore.entries.push(entry);
        }
        Ok(lore)
    }

    /// Every entry, retired ones included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry, or its evidence to the one of the same id. An observation of a failure that a second run shows
    /// stays an observation: only a person can say why.
    ///
    /// # Errors
    /// When it is not fit to enter, or cannot be written.
    pub fn add(&mut self, entry: Entry) -> Result<Merged, LoreError> {
        let path = self.folder.join(format!("{}.toml", entry.id));
        let defects = entry.defects();
        if !defects.is_empty() {
            return Err(LoreError::NoEntry {
                path,
                detail: defects.join("; "),
            });
        }
        let known = self.entries.iter().position(|other| other.id == entry.id);
        let (at, merged) = match known {
            Some(at) if self.entries[at].status == Status::Retired => return Ok(Merged::Retired),
            Some(at) => {
                let before = self.entries[at].evidence.len();
                for evidence in entry.evidence {
                    if !self.entries[at].evidence.contains(&evidence) {
                        self.entries[at].evidence.push(evidence);
                    }
                }
                if self.entries[at].evidence.len() == before {
                    return Ok(Merged::Known);
                }
                (at, Merged::Confirmed)
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1, Merged::Added)
            }
        };
        let text = toml::to_string(&self.entries[at]).map_err(|error| LoreError::NoEntry {
            path: path.clone(),
            detail: error.to_string(),
        })?;
        fs::create_dir_all(&self.folder).map_err(io("create", &self.folder))?;
        let part = self.folder.join(format!(".{}.part", std::process::id()));
        fs::write(&part, text).map_err(io("write", &part))?;
        fs::rename(&part, &path).map_err(io("write", &path))?;
        Ok(merged)
    }

    /// Whether each piece of an entry's evidence can be seen from here.
    pub fn evidence(&self, entry: &Entry) -> Vec<EvidenceState> {
        entry
            .evidence
            .iter()
            .map(|evidence| {
                // The id comes from a file: only a plain name is looked for.
                if evidence.run.contains(['/', '\\']) || evidence.run.starts_with('.') {
                    return EvidenceState::Struck;
                }
                let run = self.runs.join(&evidence.run);
                if !run.is_dir() {
                    return EvidenceState::Elsewhere;
                }
                let Ok(history) = History::load(&run) else {
                    return EvidenceState::Struck;
                };
                let shown = history.candidate(&evidence.candidate).is_some_and(|candidate| {
                    let decided = candidate.decided.iter().map(|decided| decided.verdict_digest);
                    let confirmed = candidate
                        .confirmed
                        .iter()
                        .map(|confirmed| confirmed.verdict_digest);
                    decided.chain(confirmed).any(|digest| digest == evidence.verdict)
                });
                if shown {
                    EvidenceState::Shown
                } else {
                    EvidenceState::Struck
                }
            })
            .collect()
    }

    /// Whether an entry may be served: active, and not all of its evidence struck.
    pub fn is_served(&self, entry: &Entry) -> bool {
        let states = self.evidence(entry);
        let is_struck = !states.is_empty() && states.iter().all(|state| *state == EvidenceState::Struck);
        entry.status == Status::Active && !is_struck
    }

    /// How many entries of a kind are served.
    pub fn count(&self, kind: Kind) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.kind == kind && self.is_served(entry))
            .count()
    }
}

fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> LoreError + 'a {
    move |source| LoreError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use ksmith_task::Digest;

    use super::*;
    use crate::entry::tests::entry;
    use crate::{Evidence, Source};

    fn shown_by(run: &str) -> Evidence {
        Evidence {
            run: run.into(),
            candidate: "c0001".into(),
            verdict: Digest::of(run.as_bytes()),
            device: "a CPU".into(),
        }
    }

    #[test]
    fn entries_are_kept_and_evidence_adds_up() {
        let home = tempfile::tempdir().unwrap();
        let mut lore = Lore::open(home.path()).unwrap();
        let mut first = entry("rows-vector-exp", Kind::Technique);
        first.source = Source::OwnRuns;
        first.evidence = vec![shown_by("r1")];
        assert_eq!(lore.add(first.clone()).unwrap(), Merged::Added);
        assert_eq!(lore.add(first.clone()).unwrap(), Merged::Known);
        first.evidence = vec![shown_by("r2")];
        assert_eq!(lore.add(first).unwrap(), Merged::Confirmed);
        let again = Lore::open(home.path()).unwrap();
        assert_eq!(again.entries(), lore.entries());
        assert_eq!(again.entries()[0].runs(), 2);
        assert!(again.is_served(&again.entries()[0]));
    }

    #[test]
    fn an_entry_whose_run_does_not_show_it_is_struck() {
        let home = tempfile::tempdir().unwrap();
        let mut lore = Lore::open(home.path()).unwrap();
        let mut claimed = entry("claimed", Kind::Technique);
        claimed.evidence = vec![shown_by("r1")];
        lore.add(claimed).unwrap();
        assert_eq!(lore.evidence(&lore.entries()[0]), [EvidenceState::Elsewhere]);
        // The run is there, and its record is none.
        fs::create_dir_all(home.path().join(runs::RUNS_DIR).join("r1")).unwrap();
        assert_eq!(lore.evidence(&lore.entries()[0]), [EvidenceState::Struck]);
        assert!(!lore.is_served(&lore.entries()[0]));
    }

    #[test]
    fn files_that_are_no_entries_are_refused_by_name() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(Lore::FOLDER);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("bad.toml"), "schema = 1\nid = \"bad\"\n").unwrap();
        let error = Lore::open(home.path()).unwrap_err();
        assert!(error.to_string().contains("bad.toml"), "{error}");
    }
}
