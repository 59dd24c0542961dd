//! An agent's desk: what it is given, where it works, and what is read of it afterwards.
//!
//! Everything on the desk is a copy. The agent may write anywhere on it, so that an attempt to change what it was given
//! *shows*, by hash, after the box is dead; the originals, by which the judge works, are not in the box at all. What it
//! was given is marked read-only, so that nobody changes it by mistake.
//!
//! ```text
//! ROOT/            not shown
//!   desk/          the working folder; writable
//!     BRIEF.md     what to do          (given)
//!     task/        contract without its hidden part, reference, dev tests, baseline, champion   (given)
//!     candidate/   the candidate; at first a copy of the champion
//!     proposal.toml
//!   home/          a clean home; writable
//!   reports/       what our tools write; read-only in the box
//!   taken/         what was read of the desk; not shown
//! ```

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ksmith_task::Digest;

use super::note::TEMPLATE;
use super::{Bounds, ProposalNote, Snapshot};

/// Names in the working folder.
const CANDIDATE: &str = "candidate";
const TASK: &str = "task";
const BRIEF: &str = "BRIEF.md";
const NOTE: &str = "proposal.toml";
/// Longest `proposal.toml` that is read, in bytes.
const NOTE_BYTES: u64 = 16 << 10;
/// Files outside the candidate's folder that are looked at.
const OUTSIDE: Bounds = Bounds {
    files: 256,
    file_bytes: 256 << 10,
    depth: 8,
};

/// Why a desk cannot be laid.
#[derive(Debug, thiserror::Error)]
#[error("cannot lay out the desk `{}`", path.display())]
pub struct DeskError {
    /// The desk.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

/// What is put on a desk.
#[derive(Debug, Clone, Default)]
pub struct Laid {
    /// The text of `BRIEF.md`.
    pub brief: String,
    /// Files under `task/`, by path.
    pub task: BTreeMap<String, Vec<u8>>,
    /// The candidate to begin with.
    pub candidate: Snapshot,
    /// Further given files in the working folder (a profile's project files), by path.
    pub more: BTreeMap<String, Vec<u8>>,
    /// Files of the home, by path.
    pub home: BTreeMap<String, Vec<u8>>,
    /// Files that an earlier session left and a person granted; the agent's own, by path in the working folder.
    pub granted: BTreeMap<String, Vec<u8>>,
}

/// Something that an agent left outside its candidate's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// Path in the working folder.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// An agent's desk.
#[derive(Debug)]
pub struct Desk {
    root: PathBuf,
    candidate: Snapshot,
    /// Given files by path in the working folder.
    given: BTreeMap<String, Digest>,
    granted: BTreeMap<String, Vec<u8>>,
    taken: std::sync::atomic::AtomicU32,
}

impl Desk {
    /// An empty desk below `root`, which is made anew.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn bare(root: &Path) -> io::Result<Self> {
        if root.exists() {
            std::fs::remove_dir_all(root)?;
        }
        std::fs::create_dir_all(root)?;
        // Nobody else on this machine gets through here, whatever the modes below.
        std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o700))?;
        let root = root.canonicalize()?;
        for name in ["desk", "home", "reports", "taken"] {
            let folder = root.join(name);
            std::fs::create_dir(&folder)?;
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self {
            root,
            candidate: Snapshot::default(),
            given: BTreeMap::new(),
            granted: BTreeMap::new(),
            taken: std::sync::atomic::AtomicU32::new(0),
        })
    }

    /// Lays a desk below `root`, which is made anew.
    ///
    /// # Errors
    /// When the file system refuses, or a path of `laid` is no plain one.
    pub fn lay(root: &Path, laid: &Laid) -> Result<Self, DeskError> {
        let failed = |source| DeskError {
            path: root.to_owned(),
            source,
        };
        let mut desk = Self::bare(root).map_err(failed)?;
        desk.fill(laid).map_err(failed)?;
        Ok(desk)
    }

    fn fill(&mut self, laid: &Laid) -> io::Result<()> {
        let folder = self.path();
        let mut given = vec![(BRIEF.to_owned(), laid.brief.as_bytes())];
        let task = laid
            .task
            .iter()
            .map(|(name, bytes)| (format!("{TASK}/{name}"), bytes));
        let more = laid.more.iter().map(|(name, bytes)| (name.clone(), bytes));
        given.extend(task.chain(more).map(|(name, bytes)| (name, bytes.as_slice())));
        for (name, bytes) in given {
            put(&folder, &name, bytes, 0o444)?;
            self.given.insert(name, Digest::of(bytes));
        }
        for (name, bytes) in &laid.candidate.files {
            put(&folder.join(CANDIDATE), name, bytes, 0o644)?;
        }
        std::fs::create_dir_all(folder.join(CANDIDATE))?;
        put(&folder, NOTE, TEMPLATE.as_bytes(), 0o644)?;
        for (name, bytes) in &laid.home {
            put(&self.home(), name, bytes, 0o644)?;
        }
        for (name, bytes) in &laid.granted {
            if !self.given.contains_key(name) {
                put(&folder, name, bytes, 0o644)?;
                self.granted.insert(name.clone(), bytes.clone());
            }
        }
        self.candidate = laid.candidate.clone();
        Ok(())
    }

    /// The working folder.
    pub fn path(&self) -> PathBuf {
        self.root.join("desk")
    }

    /// The clean home.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Where our tools leave reports.
    pub fn reports(&self) -> PathBuf {
        self.root.join("reports")
    }

    /// The candidate that the agent was given.
    pub fn began_with(&self) -> &Snapshot {
        &self.candidate
    }

    /// The candidate as it is now.
    pub fn candidate(&self) -> Snapshot {
        Snapshot::read(&self.path(), &[CANDIDATE], Bounds::CANDIDATE)
    }

    /// The note as it is now.
    pub fn note(&self) -> ProposalNote {
        ProposalNote::parse(Snapshot::read_file(&self.path(), NOTE, NOTE_BYTES).as_deref())
    }

    /// Copies a candidate out of the agent's reach; every copy gets a folder of its own.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn take(&self, candidate: &Snapshot) -> io::Result<PathBuf> {
        let number = self.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let folder = self.root.join("taken").join(number.to_string());
        candidate.write(&folder)?;
        Ok(folder)
    }

    /// Given files that are no longer what they were, in order.
    pub fn changed_given(&self) -> Vec<String> {
        let folder = self.path();
        self.given
            .iter()
            .filter(|(name, digest)| {
                let (inner, file) = split(name);
                Snapshot::file_in(&folder, &inner, file, Bounds::GIVEN.file_bytes)
                    .is_none_or(|bytes| Digest::of(&bytes) != **digest)
            })
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// What lies on the desk beside candidate, note, given and granted files; at most some hundred files.
    pub fn outside(&self) -> Vec<Outside> {
        let all = Snapshot::read(&self.path(), &[], OUTSIDE);
        let candidate = format!("{CANDIDATE}/");
        all.files
            .into_iter()
            .filter(|(path, bytes)| {
                !path.starts_with(&candidate)
                    && path != NOTE
                    && !self.given.contains_key(path)
                    && self.granted.get(path) != Some(bytes)
            })
            .map(|(path, bytes)| Outside { path, bytes })
            .collect()
    }

    /// Whether an agent may write this path without being asked about it: its candidate and its note.
    pub fn is_own(path: &str) -> bool {
        path == NOTE
            || path
                .strip_prefix(CANDIDATE)
                .is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether this path, or one below it, was given and may not be changed.
    pub fn is_given(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path == TASK
            || path.starts_with(&format!("{TASK}/"))
            || self
                .given
                .keys()
                .any(|name| name == path || name.starts_with(&folder))
    }

    /// Paths of all files on the desk, in order.
    pub fn list(&self) -> Vec<String> {
        Snapshot::read(&self.path(), &[], Bounds::GIVEN)
            .files
            .into_keys()
            .collect()
    }

    /// One file of the desk; no link is followed on the way.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        if !is_plain(path) {
            return None;
        }
        let (inner, file) = split(path);
        Snapshot::file_in(&self.path(), &inner, file, Bounds::CANDIDATE.file_bytes)
    }

    /// Writes one file for an agent that has no process of its own, so that nothing else is at work on the desk.
    ///
    /// # Errors
    /// When the path is no plain one, or the file system refuses.
    pub fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        put(&self.path(), path, bytes, 0o644)
    }

    /// Removes the desk with all that was left on it.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn clear(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.root)
    }
}

/// Whether a path leads down from a folder and nowhere else.
fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && Path::new(path)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
}

/// Folders and file of a path with `/`.
fn split(path: &str) -> (Vec<&str>, &str) {
    match path.rsplit_once('/') {
        Some((inner, file)) => (inner.split('/').collect(), file),
        None => (Vec::new(), path),
    }
}

/// Writes one file below a folder that no agent can reach yet.
fn put(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    if !is_plain(name) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{name}` is no plain path"),
        ));
    }
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&path, bytes)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn laid() -> Laid {
        Laid {
            brief: "do it".into(),
            task: [
                ("reference.c".to_owned(), b"double f;".to_vec()),
                ("baseline/kernel.c".to_owned(), b"slow".to_vec()),
            ]
            .into(),
            candidate: Snapshot {
                files: [("kernel.c".to_owned(), b"slow".to_vec())].into(),
                oddities: Vec::new(),
            },
            ..Laid::default()
        }
    }

    #[test]
    fn an_untouched_desk_shows_no_change() {
        let home = tempfile::tempdir().unwrap();
        let desk = Desk::lay(&home.path().join("d"), &laid()).unwrap();
        assert_eq!(desk.candidate(), *desk.began_with());
        assert!(desk.changed_given().is_empty() && desk.outside().is_empty());
        assert_eq!(desk.note().findings.len(), 2);
    }

    #[test]
    fn every_way_to_change_a_given_file_shows() {
        let home = tempfile::tempdir().unwrap();
        type Attack = fn(&Path);
        let attacks: [(&str, Attack); 5] = [
            ("write", |desk| {
                std::fs::remove_file(desk.join("task/reference.c")).unwrap();
                std::fs::write(desk.join("task/reference.c"), "x").unwrap();
            }),
            ("remove", |desk| {
                std::fs::remove_file(desk.join("task/reference.c")).unwrap()
            }),
            ("link", |desk| {
                std::fs::write(desk.join("same"), "double f;").unwrap();
                std::fs::remove_file(desk.join("task/reference.c")).unwrap();
                symlink(desk.join("same"), desk.join("task/reference.c")).unwrap();
            }),
            ("rename the folder", |desk| {
                std::fs::rename(desk.join("task"), desk.join("mine")).unwrap()
            }),
            ("link the folder", |desk| {
                std::fs::rename(desk.join("task"), desk.join("mine")).unwrap();
                symlink(desk.join("mine"), desk.join("task")).unwrap();
            }),
        ];
        for (name, attack) in attacks {
            let desk = Desk::lay(&home.path().join("d"), &laid()).unwrap();
            attack(&desk.path());
            assert!(
                desk.changed_given().contains(&"task/reference.c".to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn what_lies_beside_the_candidate_is_listed_and_taken_copies_are_apart() {
        let home = tempfile::tempdir().unwrap();
        let desk = Desk::lay(&home.path().join("d"), &laid()).unwrap();
        std::fs::write(desk.path().join("scratch.txt"), "notes").unwrap();
        std::fs::write(desk.path().join("candidate/kernel.c"), "fast").unwrap();
        assert_eq!(
            desk.outside(),
            [Outside {
                path: "scratch.txt".into(),
                bytes: b"notes".to_vec()
            }]
        );
        let one = desk.take(&desk.candidate()).unwrap();
        let two = desk.take(desk.began_with()).unwrap();
        assert_eq!(std::fs::read(one.join("kernel.c")).unwrap(), b"fast");
        assert_eq!(std::fs::read(two.join("kernel.c")).unwrap(), b"slow");
        desk.clear().unwrap();
        assert!(!home.path().join("d").exists());
    }

    #[test]
    fn paths_that_an_agent_names_never_lead_off_its_desk() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("secret"), "hidden").unwrap();
        let desk = Desk::lay(&home.path().join("d"), &laid()).unwrap();
        symlink(home.path(), desk.path().join("candidate/up")).unwrap();
        for path in [
            "../../secret",
            "/etc/passwd",
            "candidate/../../../secret",
            "candidate/up/secret",
            "",
            ".",
        ] {
            assert_eq!(desk.read(path), None, "{path}");
        }
        assert!(desk.write("../x", b"x").is_err() && desk.write("/x", b"x").is_err());
        assert_eq!(desk.read("task/reference.c").as_deref(), Some(&b"double f;"[..]));
        for path in ["task/reference.c", "task", "task/new.c", "BRIEF.md"] {
            assert!(desk.is_given(path) && !Desk::is_own(path), "{path}");
        }
        for path in ["candidate/kernel.c", "proposal.toml"] {
            assert!(Desk::is_own(path) && !desk.is_given(path), "{path}");
        }
    }

    #[test]
    fn a_desk_is_never_laid_outside_its_folder() {
        let home = tempfile::tempdir().unwrap();
        let mut wrong = laid();
        wrong.task.insert("../../evil".into(), Vec::new());
        assert!(Desk::lay(&home.path().join("d"), &wrong).is_err());
    }
}
