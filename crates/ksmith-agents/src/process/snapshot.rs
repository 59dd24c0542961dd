//! What a folder holds: kind, content and mode of every entry, hashed; and what differs between two looks.
//!
//! Links are never followed: an entry that became a link is a change whatever the link names. So a symbolic link, a
//! renamed folder or an edit through an interpreter all show, and no command line has to be understood.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use ksmith_task::Digest;
use serde::Serialize;

/// Bytes of one file that are hashed; of a longer one the length counts as well, so that a flood costs little.
const HASHED_BYTES: u64 = 64 << 20;
/// Entries that are looked at; a folder with more is reported as having been changed beyond it.
const ENTRIES: usize = 50_000;

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    File {
        digest: Digest,
        bytes: u64,
        executable: bool,
    },
    Folder,
    Link(String),
    Special,
}

/// A look at a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    entries: BTreeMap<String, Entry>,
    is_cut: bool,
}

/// How one path differs between two looks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "path")]
pub enum Change {
    /// It is new.
    Added(String),
    /// It is gone.
    Removed(String),
    /// Its content, mode or kind differs.
    Changed(String),
}

impl Change {
    /// The path, relative to the folder.
    pub fn path(&self) -> &str {
        match self {
            Self::Added(path) | Self::Removed(path) | Self::Changed(path) => path,
        }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Added(path) => write!(f, "`{path}` is new"),
            Self::Removed(path) => write!(f, "`{path}` is gone"),
            Self::Changed(path) => write!(f, "`{path}` differs"),
        }
    }
}

impl Snapshot {
    /// Looks at `folder` and everything below it.
    ///
    /// # Errors
    /// When it cannot be read; an entry that vanishes during the look is left out.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut snapshot = Self::default();
        snapshot.add_folder(folder, "")?;
        Ok(snapshot)
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            if self.entries.len() >= ENTRIES {
                self.is_cut = true;
                return Ok(());
            }
            let entry = entry?;
            // A name that is no text is shown with its bytes, so that two such names stay two.
            let name = entry
                .file_name()
                .into_string()
                .unwrap_or_else(|name| format!("{name:?}"));
            let path = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}/{name}")
            };
            let found = match fs::symlink_metadata(entry.path()) {
                Ok(metadata) => look(&entry.path(), &metadata)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_folder = found == Entry::Folder;
            self.entries.insert(path.clone(), found);
            if is_folder {
                self.add_folder(&entry.path(), &path)?;
            }
        }
        Ok(())
    }

    /// One hash of everything.
    pub fn digest(&self) -> Digest {
        let lines: Vec<(&str, String)> = self
            .entries
            .iter()
            .map(|(path, entry)| (path.as_str(), format!("{entry:?}")))
            .collect();
        let cut = [("cut", self.is_cut.to_string())];
        let parts = lines.iter().map(|(path, line)| (*path, line.as_bytes()));
        Digest::of_parts(parts.chain(cut.iter().map(|(name, text)| (*name, text.as_bytes()))))
    }

    /// What differs in `later`, by path.
    pub fn changes(&self, later: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, entry) in &self.entries {
            match later.entries.get(path) {
                None => changes.push(Change::Removed(path.clone())),
                Some(other) if other != entry => changes.push(Change::Changed(path.clone())),
                Some(_) => {}
            }
        }
        let added = later
            .entries
            .keys()
            .filter(|path| !self.entries.contains_key(*path));
        changes.extend(added.map(|path| Change::Added(path.clone())));
        if later.is_cut {
            changes.push(Change::Added(format!("more than {ENTRIES} entries")));
        }
        changes
    }

    /// Paths that are neither plain files nor folders.
    pub fn not_plain(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::Link(_) | Entry::Special))
            .map(|(path, _)| path.as_str())
    }
}

fn look(path: &Path, metadata: &Metadata) -> io::Result<Entry> {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return Ok(Entry::Link(fs::read_link(path)?.display().to_string()));
    }
    if kind.is_dir() {
        return Ok(Entry::Folder);
    }
    if !kind.is_file() || kind.is_fifo() || kind.is_socket() {
        return Ok(Entry::Special);
    }
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => {
            file.take(HASHED_BYTES).read_to_end(&mut bytes)?;
        }
        // A file that its owner made unreadable is a difference by its mode; its bytes cannot be had.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return Err(error),
    }
    Ok(Entry::File {
        digest: Digest::of(&bytes),
        bytes: metadata.len(),
        executable: metadata.permissions().mode() & 0o111 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_links_modes_and_renamed_folders_all_show() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/kept.c"), "a").unwrap();
        fs::write(at("edited.c"), "a").unwrap();
        fs::write(at("linked.c"), "a").unwrap();
        fs::write(at("mode.sh"), "a").unwrap();
        let before = Snapshot::of(folder.path()).unwrap();
        assert_eq!(before.changes(&Snapshot::of(folder.path()).unwrap()), []);
        fs::rename(at("sub"), at("other")).unwrap();
        fs::write(at("edited.c"), "b").unwrap();
        fs::remove_file(at("linked.c")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("linked.c")).unwrap();
        fs::set_permissions(at("mode.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let after = Snapshot::of(folder.path()).unwrap();
        let mut changes = before.changes(&after);
        changes.sort();
        assert_eq!(
            changes,
            [
                Change::Added("other".into()),
                Change::Added("other/kept.c".into()),
                Change::Removed("sub".into()),
                Change::Removed("sub/kept.c".into()),
                Change::Changed("edited.c".into()),
                Change::Changed("linked.c".into()),
                Change::Changed("mode.sh".into()),
            ]
        );
        assert_ne!(before.digest(), after.digest());
        assert_eq!(after.not_plain().collect::<Vec<_>>(), ["linked.c"]);
    }
}
