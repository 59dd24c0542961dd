//! What a check is given and what it finds.

use ksmith_task::Digest;
use serde::Serialize;

use super::damage::Damage;
use crate::PublicKey;

/// What is known from elsewhere, and so can be held against the folder.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// The head hash, as printed at the end of the run or told by somebody.
    pub head: Option<Digest>,
    /// The public key that must have signed the certificate.
    pub public_key: Option<PublicKey>,
    /// The id that the run must have.
    pub run: Option<String>,
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
            } => "it ends in the head you gave and is signed by your key",
            Anchors {
                head: true,
                public_key: false,
            } => "it ends in the head you gave",
            Anchors {
                head: false,
                public_key: true,
            } => "it is signed by the key you gave",
            Anchors {
                head: false,
                public_key: false,
            } => {
                "no anchor was given, so only accidents would have been found: give a head or a public key that you \
                 know from elsewhere"
            }
        };
        format!(
            "Intact: {} records, {} objects, {state}; {anchored}.",
            self.records, self.objects
        )
    }
}
