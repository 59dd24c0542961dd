//! What a check is given and what it finds.

use std::fmt;
use std::str::FromStr;

use ksmith_task::Digest;
use serde::Serialize;

use super::damage::Damage;
use crate::PublicKey;

/// What is known from elsewhere, and so can be held against the folder.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The head hash, as printed at the end of the run or told by somebody.
    pub head: Option<Head>,
    /// The public key that must have signed the certificate.
    pub public_key: Option<PublicKey>,
    /// The id that the run must have.
    pub run: Option<String>,
}

/// A head hash that somebody gives: whole, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head(String);

impl Head {
    /// The fewest digits that are taken for a head: by chance, one run in 2^48 begins so.
    pub const LEAST_DIGITS: usize = 12;
    const DIGITS: usize = 64;

    /// Whether a hash is this one, or begins so.
    pub fn fits(&self, hash: &Digest) -> bool {
        hash.to_string().starts_with(&self.0)
    }

    /// The number of digits, where it is not the whole hash.
    pub fn partial(&self) -> Option<usize> {
        Some(self.0.len()).filter(|digits| *digits < Self::DIGITS)
    }
}

impl From<Digest> for Head {
    fn from(digest: Digest) -> Self {
        Self(digest.to_string())
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches('…').to_ascii_lowercase();
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_hex && (Self::LEAST_DIGITS..=Self::DIGITS).contains(&digits.len()) {
            return Ok(Self(digits));
        }
        Err(format!(
            "`{text}` is no head hash: expected {} to {} hex digits",
            Self::LEAST_DIGITS,
            Self::DIGITS
        ))
    }
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Closed: nothing follows.
    Closed,
    /// Not closed: running, killed between two records, or cut off at the end of a line. Without an anchor nobody
    /// can tell these apart.
    Open,
    /// Interrupted: stopped by a signal, or killed while a line was being written.
    Interrupted,
}

/// Which anchors held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Anchors {
    /// The head that was given is the chain's.
    pub head: bool,
    /// How many digits of the head were given, where that was not the whole of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_digits: Option<usize>,
    /// The certificate is signed by the key that was given, and says what the ledger says.
    pub public_key: bool,
}

/// What the certificate's check gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CertificateCheck {
    /// The key that signed.
    pub key: PublicKey,
    /// Whether that key was given to the check; if not, compare it with one you know.
    pub known: bool,
    /// The claim.
    pub claim: String,
}

/// Result of the check of one run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Report {
    /// Id of the run, if its first record can be read.
    pub run: Option<String>,
    /// Whole records before the first damage.
    pub records: u64,
    /// Hash of the last of them.
    pub head: Option<Digest>,
    /// How far the run came.
    pub state: RunState,
    /// Bytes of a half-written last line.
    pub torn_bytes: u64,
    /// Which anchors held.
    pub anchors: Anchors,
    /// The certificate, if there is one.
    pub certificate: Option<CertificateCheck>,
    /// Objects checked.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Objects that no record names: left by a step that was killed before its record.
    pub unreferenced_objects: u64,
    /// Things that are no damage and worth saying, one sentence each.
    pub warnings: Vec<String>,
    /// What "intact" does not reach, one clause each: files that a closed run should have, and files not compared.
    pub gaps: Vec<String>,
    /// Files and folders in the run's folder that nothing in the record vouches for.
    pub uncovered: Vec<String>,
    /// The first damage; absent when all is well.
    pub damage: Option<Damage>,
}

impl Report {
    /// Whether no damage was found.
    pub fn is_intact(&self) -> bool {
        self.damage.is_none()
    }

    /// What the result means, in one sentence.
    pub fn sentence(&self) -> String {
        if let Some(damage) = &self.damage {
            return format!("Damaged: {damage}.");
        }
        let state = match self.state {
            RunState::Closed => "closed",
            RunState::Open => "not closed",
            RunState::Interrupted => "interrupted",
        };
        let anchored = match self.anchors {
            Anchors {
                head: true,
                public_key: true,
                ..
            } => "it ends in the head you gave and is signed by your key",
            Anchors {
                head: true,
                public_key: false,
                ..
            } => "it ends in the head you gave",
            Anchors {
                head: false,
                public_key: true,
                ..
            } => "it is signed by the key you gave",
            Anchors {
                head: false,
                public_key: false,
                ..
            } => {
                "no anchor was given, so only accidents would have been found: give a head or a public key that you \
                 know from elsewhere"
            }
        };
        let mut text = format!(
            "Intact: {} records, {} objects, {state}; {anchored}{}.",
            self.records,
            self.objects,
            self.anchors
                .head_digits
                .map_or_else(String::new, |digits| format!(
                    " ({digits} digits of the head were compared)"
                ))
        );
        if !self.gaps.is_empty() {
            text.push_str(&format!(" But {}.", self.gaps.join("; ")));
        }
        if !self.uncovered.is_empty() {
            text.push_str(&format!(" Not covered: {}.", self.uncovered.join(", ")));
        }
        text
    }
}
