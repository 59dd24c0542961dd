//! Ed25519 keys: the signing key lies outside every run folder and outside every box.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A public key; displays and serialises as 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// Why a key could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file system refused.
    #[error("cannot {what} key file `{}`", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Others may read or write the key file.
    #[error("key file `{}` has mode {mode:o}: others could sign with it; run `chmod 600` on it", path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file holds no key.
    #[error("key file `{}` does not hold 64 hex digits", .0.display())]
    Malformed(PathBuf),
    /// The system has no randomness.
    #[error("the system gives no random numbers for a key: {0}")]
    Random(String),
    /// A text that is no public key.
    #[error("`{0}` is no public key: expected 64 hex digits")]
    NoPublicKey(String),
}

impl PublicKey {
    /// Whether `signature` (128 hex digits) was made over `message` with this key's secret half.
    pub fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else {
            return false;
        };
        let Some(bytes) = from_hex::<64>(signature) else {
            return false;
        };
        // Strict: refuses weak keys and the second form that some signatures have.
        key.verify_strict(message, &Signature::from_bytes(&bytes)).is_ok()
    }

    /// The first 12 hex digits, for tables.
    pub fn short(&self) -> String {
        hex(&self.0[..6])
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        from_hex(text)
            .map(Self)
            .ok_or_else(|| KeyError::NoPublicKey(text.to_owned()))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for PublicKey {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PublicKey".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

/// A signing key.
pub struct KeyPair(SigningKey);

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public())
    }
}

impl KeyPair {
    /// Where the user's key lies: `$XDG_STATE_HOME/ksmith/signing.key`, else below `~/.local/state`.
    ///
    /// The values of both variables are given by the caller; nothing here reads the environment.
    pub fn default_path(xdg_state_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
        let absolute = |path: &OsStr| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let state = xdg_state_home
            .and_then(absolute)
            .or_else(|| home.and_then(absolute).map(|home| home.join(".local/state")))?;
        Some(state.join("ksmith/signing.key"))
    }

    /// Reads the key at `path`; makes one (mode 0600) where there is none.
    pub fn open_or_create(path: &Path) -> Result<Self, KeyError> {
        match Self::open(path) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| KeyError::Random(error.to_string()))?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(io_error("create the folder of", path))?;
        let temporary = folder.join(format!(".signing-{}.part", std::process::id()));
        let text = format!("{}\n", hex(&secret));
        // A link fails where a key already lies, so that of two processes that start together one wins and none
        // replaces the other's key.
        let made = write_private(&temporary, &text).and_then(|()| fs::hard_link(&temporary, path));
        let removed = fs::remove_file(&temporary);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_error("create", path)(error));
            }
            _ => removed.map_err(io_error("create", path))?,
        }
        Self::open(path)
    }

    /// Reads the key at `path`; refuses a file that others may read or write.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let file = File::open(path).map_err(io_error("open", path))?;
        let mode = file
            .metadata()
            .map_err(io_error("read", path))?
            .permissions()
            .mode()
            & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Permissions {
                path: path.to_owned(),
                mode,
            });
        }
        let text = io::read_to_string(file).map_err(io_error("read", path))?;
        let secret = from_hex(text.trim_end()).ok_or_else(|| KeyError::Malformed(path.to_owned()))?;
        Ok(Self(SigningKey::from_bytes(&secret)))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs `message`; 128 hex digits.
    pub fn sign(&self, message: &[u8]) -> String {
        hex(&self.0.sign(message).to_bytes())
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    // A part file left by a killed process of the same number would block for ever.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn io_error<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> KeyError + 'a {
    move |source| KeyError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes: [u8; N] = hex_bytes(text)?.try_into().ok()?;
    Some(bytes)
}

pub(crate) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_with_mode_0600_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/signing.key");
        let made = KeyPair::open_or_create(&path).unwrap();
        let again = KeyPair::open_or_create(&path).unwrap();
        assert_eq!(made.public(), again.public());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "no part file stays"
        );
        let signature = made.sign(b"text");
        assert!(again.public().verifies(b"text", &signature));
        assert!(!again.public().verifies(b"texu", &signature));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("signing.key");
        KeyPair::open_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refusal = KeyPair::open_or_create(&path).unwrap_err().to_string();
        assert!(refusal.contains("mode 640"), "{refusal}");
    }

    #[test]
    fn the_default_path_ignores_relative_variables() {
        let path = |xdg: Option<&str>, home: Option<&str>| {
            KeyPair::default_path(xdg.map(OsStr::new), home.map(OsStr::new))
        };
        assert_eq!(
            path(Some("/s"), None),
            Some(PathBuf::from("/s/ksmith/signing.key"))
        );
        assert_eq!(
            path(Some("s"), Some("/h")),
            Some(PathBuf::from("/h/.local/state/ksmith/signing.key"))
        );
        assert_eq!(path(None, Some("")), None);
    }
}
