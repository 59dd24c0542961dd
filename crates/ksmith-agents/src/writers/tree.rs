//! Reads a folder that an agent could write to, without trusting it; the only file that knows the crate `rustix`.
//!
//! Every step opens one name relative to an open folder and follows no link, so that neither a link nor a folder renamed
//! under our hands leads out of it. Pipes, devices and sockets are never read, and nothing grows without a bound.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ksmith_task::Digest;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

/// How much of a folder is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Files.
    pub files: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Folders below each other.
    pub depth: usize,
}

impl Bounds {
    /// A candidate: some source files.
    pub const CANDIDATE: Self = Self {
        files: 64,
        file_bytes: 1 << 20,
        depth: 4,
    };
    /// What an agent is given to read: larger, because a task may bring traces.
    pub const GIVEN: Self = Self {
        files: 1024,
        file_bytes: 64 << 20,
        depth: 8,
    };
}

/// Something in a folder that has no place in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// A symbolic link; also in place of the folder itself.
    Link(String),
    /// A pipe, device or socket.
    Special(String),
    /// More files than the bound; the rest was not looked at.
    TooManyFiles,
    /// A file longer than the bound.
    TooLarge(String),
    /// A folder deeper than the bound.
    TooDeep(String),
    /// A name that is no UTF-8.
    BadName(String),
    /// Something that cannot be opened.
    Unreadable(String),
    /// The folder itself is gone, or is no folder.
    Missing,
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link(path) => write!(f, "`{path}` is a symbolic link"),
            Self::Special(path) => write!(f, "`{path}` is neither file nor folder"),
            Self::TooManyFiles => write!(f, "there are too many files"),
            Self::TooLarge(path) => write!(f, "`{path}` is too large"),
            Self::TooDeep(path) => write!(f, "`{path}` lies too deep"),
            Self::BadName(path) => write!(f, "`{path}` is not named in UTF-8"),
            Self::Unreadable(path) => write!(f, "`{path}` cannot be read"),
            Self::Missing => write!(f, "the folder is gone"),
        }
    }
}

/// The regular files below a folder at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Contents by path relative to the folder, with `/`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Everything else that was found.
    pub oddities: Vec<Oddity>,
}

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK);

impl Snapshot {
    /// Reads all files below `folder`, whose own path must be out of the agent's reach, then `inner` names inside it.
    pub fn read(folder: &Path, inner: &[&str], bounds: Bounds) -> Self {
        let mut snapshot = Self::default();
        let mut open = openat(CWD, folder, OPEN | OFlags::DIRECTORY, Mode::empty());
        for name in inner {
            open = open.and_then(|parent| openat(&parent, *name, OPEN | OFlags::DIRECTORY, Mode::empty()));
        }
        match open {
            Ok(root) => snapshot.walk(&root, "", bounds, 0),
            // With both flags the kernel says that a link is no folder.
            Err(_) => snapshot.oddities.push(Oddity::Missing),
        }
        snapshot
    }

    /// Reads one file of `folder`, if it is one and not longer than `most` bytes.
    pub fn read_file(folder: &Path, name: &str, most: u64) -> Option<Vec<u8>> {
        Self::file_in(folder, &[], name, most)
    }

    /// Reads one file below `folder`, whose own path must be out of the agent's reach, through `inner` names inside it.
    pub fn file_in(folder: &Path, inner: &[&str], name: &str, most: u64) -> Option<Vec<u8>> {
        let mut open = openat(CWD, folder, OPEN | OFlags::DIRECTORY, Mode::empty()).ok()?;
        for name in inner {
            open = openat(&open, *name, OPEN | OFlags::DIRECTORY, Mode::empty()).ok()?;
        }
        let file = openat(&open, name, OPEN, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        read(file, most).ok().flatten()
    }

    fn walk(&mut self, folder: &OwnedFd, prefix: &str, bounds: Bounds, depth: usize) {
        let mut names = Vec::new();
        let Ok(entries) = Dir::read_from(folder) else {
            self.oddities.push(Oddity::Unreadable(shown(prefix)));
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match name.to_str() {
                Ok(name) => names.push(name.to_owned()),
                Err(_) => self
                    .oddities
                    .push(Oddity::BadName(format!("{prefix}{}", name.to_string_lossy()))),
            }
            if names.len() > bounds.files {
                break;
            }
        }
        names.sort();
        for name in names {
            if self.files.len() >= bounds.files || self.oddities.len() >= bounds.files {
                if self.oddities.last() != Some(&Oddity::TooManyFiles) {
                    self.oddities.push(Oddity::TooManyFiles);
                }
                return;
            }
            self.take(folder, format!("{prefix}{name}"), &name, bounds, depth);
        }
    }

    fn take(&mut self, folder: &OwnedFd, path: String, name: &str, bounds: Bounds, depth: usize) {
        let file = match openat(folder, name, OPEN, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP) => return self.oddities.push(Oddity::Link(path)),
            // A socket cannot be opened.
            Err(Errno::NXIO) => return self.oddities.push(Oddity::Special(path)),
            Err(_) => return self.oddities.push(Oddity::Unreadable(path)),
        };
        let kind = fstat(file.as_fd()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::Directory) if depth + 1 >= bounds.depth => {
                self.oddities.push(Oddity::TooDeep(path));
            }
            Ok(FileType::Directory) => self.walk(&file, &format!("{path}/"), bounds, depth + 1),
            Ok(FileType::RegularFile) => match read(file, bounds.file_bytes) {
                Ok(Some(bytes)) => {
                    self.files.insert(path, bytes);
                }
                Ok(None) => self.oddities.push(Oddity::TooLarge(path)),
                Err(_) => self.oddities.push(Oddity::Unreadable(path)),
            },
            Ok(_) => self.oddities.push(Oddity::Special(path)),
            Err(_) => self.oddities.push(Oddity::Unreadable(path)),
        }
    }

    /// Hash of names and contents.
    pub fn digest(&self) -> Digest {
        Digest::of_parts(
            self.files
                .iter()
                .map(|(name, bytes)| (name.as_str(), bytes.as_slice())),
        )
    }

    /// Paths that differ from `other`, were added or are gone, in order.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names = self.files.keys().chain(other.files.keys());
        let mut differ: Vec<String> = names
            .filter(|name| self.files.get(*name) != other.files.get(*name))
            .cloned()
            .collect();
        differ.sort();
        differ.dedup();
        differ
    }

    /// What differs first in a later look, in words. Beyond the bounds of the looks nothing is compared.
    pub fn first_difference(&self, later: &Self) -> Option<String> {
        if let Some(path) = self.differences(later).into_iter().next() {
            return Some(match (self.files.get(&path), later.files.get(&path)) {
                (_, None) => format!("`{path}` is gone"),
                (None, _) => format!("`{path}` is new"),
                (Some(_), Some(_)) => format!("`{path}` differs"),
            });
        }
        let new = later
            .oddities
            .iter()
            .find(|oddity| !self.oddities.contains(oddity));
        let gone = self
            .oddities
            .iter()
            .find(|oddity| !later.oddities.contains(oddity));
        new.map(ToString::to_string)
            .or_else(|| gone.map(|oddity| format!("no longer: {oddity}")))
    }

    /// Writes the files below `folder`, which must be empty and out of the agent's reach.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }
}

/// All bytes of a file, or none if it is longer than `most`.
fn read(file: OwnedFd, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::from(file).take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

fn shown(prefix: &str) -> String {
    if prefix.is_empty() { "." } else { prefix }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn read_all(folder: &Path) -> Snapshot {
        Snapshot::read(folder, &["candidate"], Bounds::CANDIDATE)
    }

    #[test]
    fn a_folder_of_files_is_read_whole_and_written_back_alike() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("candidate");
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        std::fs::write(folder.join("kernel.c"), "one").unwrap();
        std::fs::write(folder.join("a/b/two.h"), "two").unwrap();
        let snapshot = read_all(home.path());
        assert_eq!(
            snapshot.files.keys().collect::<Vec<_>>(),
            ["a/b/two.h", "kernel.c"]
        );
        assert!(snapshot.oddities.is_empty());
        snapshot.write(&home.path().join("copy")).unwrap();
        let copy = Snapshot::read(home.path(), &["copy"], Bounds::CANDIDATE);
        assert_eq!(copy.digest(), snapshot.digest());
        assert!(copy.differences(&snapshot).is_empty());
        assert_eq!(snapshot.first_difference(&copy), None);
    }

    #[test]
    fn links_are_named_and_never_followed() {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join("secret");
        std::fs::write(&secret, "hidden").unwrap();
        let folder = home.path().join("candidate");
        std::fs::create_dir_all(&folder).unwrap();
        symlink(&secret, folder.join("kernel.c")).unwrap();
        symlink(home.path(), folder.join("up")).unwrap();
        let snapshot = read_all(home.path());
        assert!(snapshot.files.is_empty());
        assert_eq!(
            snapshot.oddities,
            [Oddity::Link("kernel.c".into()), Oddity::Link("up".into())]
        );
        assert_eq!(Snapshot::read_file(&folder, "kernel.c", 100), None);
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_no_folder() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("kernel.c"), "hidden").unwrap();
        symlink(&elsewhere, home.path().join("candidate")).unwrap();
        let snapshot = read_all(home.path());
        assert_eq!(
            (snapshot.files.len(), snapshot.oddities),
            (0, vec![Oddity::Missing])
        );
    }

    #[test]
    fn pipes_large_files_and_deep_folders_are_named_and_not_read() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("candidate");
        std::fs::create_dir_all(folder.join("1/2/3/4")).unwrap();
        std::fs::write(folder.join("large"), vec![0u8; (1 << 20) + 1]).unwrap();
        let pipe = std::process::Command::new("mkfifo")
            .arg(folder.join("pipe"))
            .status()
            .unwrap();
        assert!(pipe.success());
        let snapshot = read_all(home.path());
        assert_eq!(
            snapshot.oddities,
            [
                Oddity::TooDeep("1/2/3/4".into()),
                Oddity::TooLarge("large".into()),
                Oddity::Special("pipe".into())
            ]
        );
    }

    #[test]
    fn too_many_files_are_said_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("candidate");
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..100 {
            std::fs::write(folder.join(format!("{number}.c")), "x").unwrap();
        }
        let snapshot = read_all(home.path());
        assert_eq!(snapshot.files.len(), Bounds::CANDIDATE.files);
        assert_eq!(snapshot.oddities, [Oddity::TooManyFiles]);
    }

    #[test]
    fn edits_links_and_renamed_folders_all_show() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("candidate");
        let lay = || {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(folder.join("sub")).unwrap();
            std::fs::write(folder.join("kernel.c"), "a").unwrap();
            std::fs::write(folder.join("sub/part.h"), "b").unwrap();
            read_all(home.path())
        };
        type Edit = fn(&Path);
        let edits: [(Edit, &str); 5] = [
            (
                |at| std::fs::write(at.join("kernel.c"), "c").unwrap(),
                "`kernel.c` differs",
            ),
            (|at| std::fs::write(at.join("a.c"), "").unwrap(), "`a.c` is new"),
            (
                |at| std::fs::remove_file(at.join("kernel.c")).unwrap(),
                "`kernel.c` is gone",
            ),
            (
                |at| std::fs::rename(at.join("sub"), at.join("x")).unwrap(),
                "`sub/part.h` is gone",
            ),
            (
                |at| symlink("kernel.c", at.join("same.c")).unwrap(),
                "`same.c` is a symbolic link",
            ),
        ];
        for (edit, said) in edits {
            let before = lay();
            edit(&folder);
            assert_eq!(
                before.first_difference(&read_all(home.path())).as_deref(),
                Some(said)
            );
        }
    }
}
