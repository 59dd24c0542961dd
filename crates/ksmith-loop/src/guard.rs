//! Watches what was locked: a later edit stops the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ksmith_task::Digest;

use crate::RunError;

/// Hashes of the task's files at the time of the lock.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    task: PathBuf,
    locked: BTreeMap<String, Digest>,
    seen: BTreeMap<String, Seen>,
}

/// A file as it was when it was last hashed: where neither changed, its bytes are not read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    modified: Option<std::time::SystemTime>,
    digest: Digest,
}

impl Guard {
    /// Locks every file below `task`.
    pub(crate) fn lock(task: &Path) -> Result<Self, RunError> {
        let mut guard = Self {
            task: task.to_owned(),
            locked: BTreeMap::new(),
            seen: BTreeMap::new(),
        };
        guard.locked = guard.hash()?;
        Ok(guard)
    }

    /// Takes up a lock made earlier.
    pub(crate) fn resume(task: &Path, locked: BTreeMap<String, Digest>) -> Self {
        Self {
            task: task.to_owned(),
            locked,
            seen: BTreeMap::new(),
        }
    }

    /// Hashes by path.
    pub(crate) fn locked(&self) -> &BTreeMap<String, Digest> {
        &self.locked
    }

    /// Paths that were edited, added or removed since the lock.
    pub(crate) fn changed(&mut self) -> Result<Vec<String>, RunError> {
        let now = self.hash()?;
        let mut changed: Vec<String> = self
            .locked
            .iter()
            .filter(|(path, digest)| now.get(*path) != Some(*digest))
            .map(|(p, _)| p.clone())
            .collect();
        changed.extend(
            now.keys()
                .filter(|path| !self.locked.contains_key(*path))
                .cloned(),
        );
        Ok(changed)
    }

    fn hash(&mut self) -> Result<BTreeMap<String, Digest>, RunError> {
        let mut files = Vec::new();
        walk(&self.task, &self.task, &mut files)?;
        let mut hashes = BTreeMap::new();
        for (name, path) in files {
            let meta = std::fs::metadata(&path).map_err(RunError::io("read", &path))?;
            let (bytes, modified) = (meta.len(), meta.modified().ok());
            let known = self
                .seen
                .get(&name)
                .filter(|seen| seen.bytes == bytes && seen.modified == modified);
            let digest = match known {
                Some(seen) => seen.digest,
                None => Digest::of(&std::fs::read(&path).map_err(RunError::io("read", &path))?),
            };
            self.seen.insert(
                name.clone(),
                Seen {
                    bytes,
                    modified,
                    digest,
                },
            );
            hashes.insert(name, digest);
        }
        Ok(hashes)
    }
}

/// Every regular file below `folder`, hidden ones left out: a run made inside the task's own folder lies in `.ksmith`.
fn walk(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> Result<(), RunError> {
    for entry in std::fs::read_dir(folder).map_err(RunError::io("read folder", folder))? {
        let entry = entry.map_err(RunError::io("read folder", folder))?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(RunError::io("read", &path))?;
        if kind.is_dir() {
            walk(root, &path, files)?;
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            files.push((name, path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_an_addition_and_a_removal_are_each_seen() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("task.toml", "schema = 1");
        write("reference.c", "int x;");
        let mut guard = Guard::lock(folder.path()).unwrap();
        assert_eq!(guard.changed().unwrap(), Vec::<String>::new());
        write("reference.c", "int y;;");
        write("extra.c", "");
        std::fs::remove_file(folder.path().join("task.toml")).unwrap();
        assert_eq!(guard.changed().unwrap(), ["reference.c", "task.toml", "extra.c"]);
    }
}
