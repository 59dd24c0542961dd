//! Secrets: where they come from, where they lie, what is published before and after use.
//!
//! A secret comes from the operating system, is written to a file that only the judge's user can read (mode 0600,
//! outside every box) before its first use, and is published as a commitment hash first and in clear at the end of
//! a run. Development cases use the fixed, visible [`Secret::dev`].

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
    entries: Vec<(String, Secret)>,
}

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
        let mut entries = Vec::new();
        for line in text.lines() {
            let parsed = line.split_once(' ').and_then(|(purpose, hex)| {
                let digest: Digest = hex.parse().ok()?;
                Some((purpose.to_owned(), Secret(*digest.as_bytes())))
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
        Ok(Self {
            path: path.to_owned(),
            entries,
        })
    }

    /// Draws a secret for the next use of its kind (`score-1`, `score-2`, …), writes it down, and only then hands it
    /// out together with its commitment.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn draw(&mut self, kind: &str) -> io::Result<(Secret, SeedCommitment)> {
        self.add(format!("{kind}-{}", self.count(kind) + 1))
    }

    /// How many secrets of this kind were drawn, by earlier processes of the run too.
    pub fn count(&self, kind: &str) -> usize {
        let is_kind = |name: &str| name.rsplit_once('-').is_some_and(|(head, _)| head == kind);
        self.entries.iter().filter(|(name, _)| is_kind(name)).count()
    }

    /// The one secret of `purpose`, drawn now if there is none (a run's screening secret survives a resume).
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn once(&mut self, purpose: &str) -> io::Result<(Secret, SeedCommitment)> {
        match self.entries.iter().find(|(name, _)| name == purpose) {
            Some((_, secret)) => Ok((secret.clone(), secret.commitment(purpose))),
            None => self.add(purpose.to_owned()),
        }
    }

    fn add(&mut self, purpose: String) -> io::Result<(Secret, SeedCommitment)> {
        let secret = Secret::from_system()?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        writeln!(file, "{purpose} {}", secret.reveal(&purpose).seed)?;
        file.sync_data()?;
        let commitment = secret.commitment(&purpose);
        self.entries.push((purpose, secret.clone()));
        Ok((secret, commitment))
    }

    /// What was promised so far.
    pub fn commitments(&self) -> Vec<SeedCommitment> {
        self.entries
            .iter()
            .map(|(purpose, secret)| secret.commitment(purpose))
            .collect()
    }

    /// Everything drawn so far, in clear.
    pub fn reveal(&self) -> Vec<RevealedSeed> {
        self.entries
            .iter()
            .map(|(purpose, secret)| secret.reveal(purpose))
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
    fn debug_output_never_shows_the_secret() {
        let secret = Secret::from_bytes([7; 32]);
        assert!(!format!("{secret:?}").contains("0707"));
    }
}
