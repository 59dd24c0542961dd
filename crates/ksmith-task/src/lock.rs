//! Digests of everything that may not change during a run, and what exactly changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::contract::Compare;
use crate::{Digest, Task};

/// What is locked by a run: written to `task.lock.json` and into the first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Lock {
    /// Version of the format: 1.
    pub schema: u32,
    /// Name of the task.
    pub task: String,
    /// Hash of the expanded contract, so that a changed family default counts as a change.
    pub contract: Digest,
    /// Hash of each file by its path relative to the task's folder: `task.toml`, reference, checkers, baselines, ….
    pub files: BTreeMap<String, Digest>,
    /// Hash of the judge's own build.
    pub judge: Digest,
}

/// Something locked that is no longer what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Change {
    /// The expanded contract differs.
    Contract,
    /// The judge is another build.
    Judge,
    /// A file differs.
    Changed {
        /// Path relative to the task's folder.
        file: String,
    },
    /// A file is gone.
    Removed {
        /// Path relative to the task's folder.
        file: String,
    },
    /// A file that was not there is locked now.
    Added {
        /// Path relative to the task's folder.
        file: String,
    },
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Contract => f.write_str("the expanded contract differs"),
            Self::Judge => f.write_str("the judge is another build"),
            Self::Changed { file } => write!(f, "`{file}` differs"),
            Self::Removed { file } => write!(f, "`{file}` is gone"),
            Self::Added { file } => write!(f, "`{file}` is new"),
        }
    }
}

/// A file that should be locked and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot lock `{}`", .path.display())]
pub struct LockError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl Lock {
    /// Hashes everything that `task` names. A baseline or reference of a backend that is not there is left out.
    pub fn of(task: &Task, judge: Digest) -> Result<Self, LockError> {
        let contract = task.contract();
        let mut files = BTreeMap::new();
        let mut add = |relative: &Path| lock_path(task.dir(), relative, &mut files);
        let name = task
            .file()
            .file_name()
            .map_or_else(|| PathBuf::from("task.toml"), PathBuf::from);
        add(&name)?;
        add(&contract.reference.source)?;
        if let Some(generator) = &contract.generator {
            add(&generator.source)?;
        }
        for output in &contract.outputs {
            if let Compare::Checker { source } = &output.compare {
                add(source)?;
            }
        }
        for trace in &contract.hidden.traces {
            add(&trace.file)?;
        }
        let folders = contract.baseline.values().chain(&contract.seeds);
        for folder in folders.chain(&contract.reference.cuda) {
            if task.dir().join(folder).exists() {
                add(folder)?;
            }
        }
        for source in contract.peers.iter().filter_map(|peer| peer.source.as_ref()) {
            add(source)?;
        }
        Ok(Self {
            schema: 1,
            task: contract.name.clone(),
            contract: Digest::of(task.full().as_bytes()),
            files,
            judge,
        })
    }

    /// One hash of everything, for verdicts and certificates.
    pub fn digest(&self) -> Digest {
        let parts = [
            ("task", self.task.as_bytes()),
            ("contract", self.contract.as_bytes()),
            ("judge", self.judge.as_bytes()),
        ];
        let files = self
            .files
            .iter()
            .map(|(name, digest)| (name.as_str(), &digest.as_bytes()[..]));
        Digest::of_parts(parts.into_iter().chain(files))
    }

    /// Everything in which `now` differs from this lock, in a fixed order.
    pub fn differences(&self, now: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.contract != now.contract {
            changes.push(Change::Contract);
        }
        if self.judge != now.judge {
            changes.push(Change::Judge);
        }
        for (file, digest) in &self.files {
            match now.files.get(file) {
                None => changes.push(Change::Removed { file: file.clone() }),
                Some(other) if other != digest => changes.push(Change::Changed { file: file.clone() }),
                Some(_) => {}
            }
        }
        let added = now.files.keys().filter(|file| !self.files.contains_key(*file));
        changes.extend(added.map(|file| Change::Added { file: file.clone() }));
        changes
    }

    /// Everything in which the task on disk differs from this lock; the judge is taken as unchanged.
    pub fn compare(&self, task: &Task) -> Result<Vec<Change>, LockError> {
        match Self::of(task, self.judge) {
            Ok(now) => Ok(self.differences(&now)),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
                let file = portable(error.path.strip_prefix(task.dir()).unwrap_or(&error.path));
                Ok(vec![Change::Removed { file }])
            }
            Err(error) => Err(error),
        }
    }
}

fn portable(path: &Path) -> String {
    path.components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

/// Hashes a file, or a folder file by file; a link is hashed as the text of its target and not followed.
fn lock_path(dir: &Path, relative: &Path, files: &mut BTreeMap<String, Digest>) -> Result<(), LockError> {
    let path = dir.join(relative);
    let failed = |source| LockError {
        path: path.clone(),
        source,
    };
    let metadata = fs::symlink_metadata(&path).map_err(failed)?;
    if metadata.is_symlink() {
        let target = fs::read_link(&path).map_err(failed)?;
        let text = format!("link to {}", target.display());
        files.insert(portable(relative), Digest::of(text.as_bytes()));
    } else if metadata.is_dir() {
        let mut names = fs::read_dir(&path)
            .and_then(|entries| {
                entries
                    .map(|entry| entry.map(|entry| entry.file_name()))
                    .collect::<io::Result<Vec<_>>>()
            })
            .map_err(failed)?;
        names.sort();
        for name in names {
            lock_path(dir, &relative.join(name), files)?;
        }
    } else {
        files.insert(portable(relative), Digest::of(&fs::read(&path).map_err(failed)?));
    }
    Ok(())
}
