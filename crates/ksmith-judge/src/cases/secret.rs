//! Secrets: where they come from, where they lie, what is published before and after use.
//!
//! A secret comes from the operating system, is written to a file that only the judge's user can read (mode 0600,
//! outside every box) before its first use, and is published as a commitment hash first and in clear at the end of
//! a run. A step's secrets are *promised* (drawn, written down, unused) before the step, so that whoever keeps the record
//! can put their commitments there first. Development cases use the fixed, visible [`Secret::dev`].

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ksmith_ledger::{RevealedSeed, SeedCommitment};
use ksmith_task::Digest;

/// 256 secret bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// Secrets are never printed by accident.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Draws from the operating system.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn from_system() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// The visible seed of development cases: the same on every machine and in every run.
    pub fn dev() -> Self {
        Self(*Digest::of(b"kernelsmith development cases, schema 1").as_bytes())
    }

    /// Rebuilds a revealed secret.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What is published before use.
    pub fn commitment(&self, purpose: &str) -> SeedCommitment {
        SeedCommitment::new(purpose, &self.0)
    }

    /// The secret in clear, for the closing record.
    pub fn reveal(&self, purpose: &str) -> RevealedSeed {
        RevealedSeed::new(purpose, &self.0)
    }

    /// A secret of its own for one purpose, from which this one cannot be computed.
    pub fn derive(&self, purpose: &str, index: u64) -> Self {
        let index = index.to_le_bytes();
        Self(
            *Digest::of_parts([
                ("derive", &self.0[..]),
                ("purpose", purpose.as_bytes()),
                ("index", &index),
            ])
            .as_bytes(),
        )
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The secrets of one run, kept in a file so that a resumed run goes on with them.
#[derive(Debug)]
pub struct SecretBook {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// A secret of the book, and whether it was handed out.
#[derive(Debug, Clone)]
struct Entry {
    purpose: String,
    secret: Secret,
    used: bool,
}

impl Entry {
    fn is_kind(&self, kind: &str) -> bool {
        self.purpose
            .rsplit_once('-')
            .is_some_and(|(head, _)| head == kind)
    }
}

/// Stands in the file in place of a secret: the one of this purpose was handed out.
const USED: &str = "used";

impl SecretBook {
    /// Opens or creates the file (mode 0600) and reads what an interrupted run left in it.
    ///
    /// # Errors
    /// When the file cannot be made, read, or holds something else.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut text = String::new();
        match File::open(path) {
            Ok(mut file) => {
                file.read_to_string(&mut text)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                OpenOptions::new()
                    .create_new(true)
                    .write(true)
                    .mode(0o600)
                    .open(path)?;
            }
            Err(error) => return Err(error),
        }
        let mut entries: Vec<Entry> = Vec::new();
        for line in text.lines() {
            if let Some(purpose) = line.strip_suffix(USED).and_then(|line| line.strip_suffix(' ')) {
                entries
                    .iter_mut()
                    .filter(|entry| entry.purpose == purpose)
                    .for_each(|entry| entry.used = true);
                continue;
            }
            let parsed = line.split_once(' ').and_then(|(purpose, hex)| {
                let digest: Digest = hex.parse().ok()?;
                Some(Entry {
                    purpose: purpose.to_owned(),
                    secret: Secret(*digest.as_bytes()),
                    used: false,
                })
            });
            match parsed {
                Some(entry) => entries.push(entry),
                // The process died while writing: the secret was not used, because it is synced before use.
                None if !text.ends_with('\n') => {}
                None => {
                    return Err(io::Error::other(
                        "the secrets file holds a line that is no secret",
                    ));
                }
            }
        }
        // What a dying process wrote half must not become the head of the next line.
        if !text.is_empty() && !text.ends_with('\n') {
            let whole = text.rfind('\n').map_or(0, |at| at + 1) as u64;
            OpenOptions::new().write(true).open(path)?.set_len(whole)?;
        }
        Ok(Self {
            path: path.to_owned(),
            entries,
        })
    }

    /// Draws the secret of the next use of its kind without using it, unless that was done already: it is among the
    /// commitments from now on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn promise(&mut self, kind: &str) -> io::Result<()> {
        self.next(kind).map(drop)
    }

    /// The same for the one secret of `purpose`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn promise_once(&mut self, purpose: &str) -> io::Result<()> {
        self.only(purpose).map(drop)
    }

    /// Hands out the secret for the next use of its kind (`score-1`, `score-2`, …): the promised one, or one that is
    /// drawn and written down now.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn draw(&mut self, kind: &str) -> io::Result<(Secret, SeedCommitment)> {
        let place = self.next(kind)?;
        self.hand_out(place)
    }

    /// How many secrets of this kind were used, by earlier processes of the run too.
    pub fn count(&self, kind: &str) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.used && entry.is_kind(kind))
            .count()
    }

    /// Place of the unused secret of a kind.
    fn next(&mut self, kind: &str) -> io::Result<usize> {
        match self
            .entries
            .iter()
            .position(|entry| !entry.used && entry.is_kind(kind))
        {
            Some(place) => Ok(place),
            None => self.add(format!("{kind}-{}", self.count(kind) + 1)),
        }
    }

    fn only(&mut self, purpose: &str) -> io::Result<usize> {
        match self.entries.iter().position(|entry| entry.purpose == purpose) {
            Some(place) => Ok(place),
            None => self.add(purpose.to_owned()),
        }
    }

    fn hand_out(&mut self, place: usize) -> io::Result<(Secret, SeedCommitment)> {
        let Some(entry) = self.entries.get(place).cloned() else {
            return Err(io::Error::other("the book holds no such secret"));
        };
        if !entry.used {
            self.write(&entry.purpose, USED)?;
            self.entries[place].used = true;
        }
        let commitment = entry.secret.commitment(&entry.purpose);
        Ok((entry.secret, commitment))
    }

    /// The one secret of `purpose`, drawn now if there is none (a run's screening secret survives a resume).
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn once(&mut self, purpose: &str) -> io::Result<(Secret, SeedCommitment)> {
        let place = self.only(purpose)?;
        self.hand_out(place)
    }

    fn add(&mut self, purpose: String) -> io::Result<usize> {
        let secret = Secret::from_system()?;
        self.write(&purpose, &secret.reveal(&purpose).seed)?;
        self.entries.push(Entry {
            purpose,
            secret,
            used: false,
        });
        Ok(self.entries.len() - 1)
    }

    fn write(&self, purpose: &str, word: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        writeln!(file, "{purpose} {word}")?;
        file.sync_data()
    }

    /// What was promised so far.
    pub fn commitments(&self) -> Vec<SeedCommitment> {
        self.entries
            .iter()
            .map(|entry| entry.secret.commitment(&entry.purpose))
            .collect()
    }

    /// Everything drawn so far, in clear.
    pub fn reveal(&self) -> Vec<RevealedSeed> {
        self.entries
            .iter()
            .map(|entry| entry.secret.reveal(&entry.purpose))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_secrets_file_is_private_and_survives_a_resume() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/secrets");
        let mut book = SecretBook::open(&path).unwrap();
        let (screen, _) = book.once("screen").unwrap();
        let (score, promised) = book.draw("score").unwrap();
        assert_ne!(screen, score);
        assert_eq!(promised.purpose, "score-1");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let mut again = SecretBook::open(&path).unwrap();
        assert_eq!(again.once("screen").unwrap().0, screen);
        assert_eq!(again.reveal(), book.reveal());
        assert_eq!(again.commitments()[1], promised);
        assert_eq!(again.draw("score").unwrap().1.purpose, "score-2");
    }

    #[test]
    fn a_promise_is_committed_before_it_is_used_and_used_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets");
        let mut book = SecretBook::open(&path).unwrap();
        book.promise("score").unwrap();
        book.promise("score").unwrap();
        book.promise_once("screen").unwrap();
        let promised = book.commitments();
        assert_eq!((promised.len(), book.count("score")), (2, 0));
        // An interrupted run goes on with what it promised.
        let mut book = SecretBook::open(&path).unwrap();
        let (first, commitment) = book.draw("score").unwrap();
        assert_eq!((commitment, book.count("score")), (promised[0].clone(), 1));
        assert_eq!(book.once("screen").unwrap().1, promised[1]);
        let (second, _) = book.draw("score").unwrap();
        assert_ne!(first, second);
        // A torn last line is left out, and what follows is whole again.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "score-3 0a").unwrap();
        drop(file);
        let mut torn = SecretBook::open(&path).unwrap();
        torn.promise("slope").unwrap();
        assert_eq!(SecretBook::open(&path).unwrap().commitments().len(), 4);
        let again = SecretBook::open(&path).unwrap();
        assert_eq!((again.count("score"), again.commitments().len()), (2, 4));
    }

    #[test]
    fn debug_output_never_shows_the_secret() {
        let secret = Secret::from_bytes([7; 32]);
        assert!(!format!("{secret:?}").contains("0707"));
    }
}
