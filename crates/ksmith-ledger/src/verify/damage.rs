//! What can be wrong with a run folder, and where.

use std::fmt;

use ksmith_task::Digest;
use serde::Serialize;

/// The kind of damage; the serialised names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// There is no ledger.
    NoLedger,
    /// A line is no record.
    NotARecord,
    /// A line was written by a later version of the format.
    UnknownVersion,
    /// A line's bytes do not hash to its `hash`.
    HashMismatch,
    /// A line is a record in another than the canonical form.
    NotCanonical,
    /// A record stands in another place than its number says (swapped, removed, repeated).
    OutOfOrder,
    /// A record's `prev` is not the hash of the record before.
    ChainBroken,
    /// A body does not have the shape of its kind.
    BadBody,
    /// A record stands where its kind cannot (no `run-opened` first, something after `closed`).
    OutOfPlace,
    /// The closing record disagrees with the chain.
    ClosingMismatch,
    /// A revealed seed does not fit its commitment, or one was not revealed.
    SeedMismatch,
    /// The head that was given is not in the chain: it was rewritten, its tail dropped, or it is another run.
    HeadMismatch,
    /// Records follow the head that was given.
    RecordsAfterHead,
    /// The chain is shorter than its anchor says.
    DroppedTail,
    /// The ledger is that of another run.
    OtherRun,
    /// The certificate is missing although an anchor asks for it, or cannot be read.
    CertificateUnreadable,
    /// The certificate's signature does not fit its text.
    BadSignature,
    /// The certificate is signed by another key than the one given.
    OtherKey,
    /// The certificate says something else than the ledger.
    CertificateMismatch,
    /// Files of an exported folder are not those that its certificate names.
    ExportMismatch,
    /// An object that a record names is missing.
    ObjectMissing,
    /// An object's bytes do not hash to its name, or its size is not the recorded one.
    ObjectDamaged,
    /// A file in the object folder is no object.
    StrayFile,
    /// A locked file is not what the first record says.
    LockedFileChanged,
    /// A view is not what the ledger gives.
    ViewMismatch,
    /// A file cannot be read.
    Unreadable,
}

/// Where damage was found; what does not apply is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Place {
    /// File, relative to the run folder.
    pub file: String,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Number of the record.
    pub seq: Option<u64>,
    /// Byte offset in the file; of the byte itself where that can be known, else of its line.
    pub offset: Option<u64>,
    /// The object.
    pub object: Option<Digest>,
}

/// The first damage found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Damage {
    /// What is wrong.
    pub cause: Cause,
    /// Where.
    pub place: Place,
    /// One sentence fragment in words.
    pub detail: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.file)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(seq) = self.seq {
            write!(f, ", record {seq}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        if let Some(object) = self.object {
            write!(f, ", object {object}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.detail)
    }
}

impl std::error::Error for Damage {}

/// The result of a check: nothing, or the first damage.
pub(super) type Checked<T = ()> = Result<T, Box<Damage>>;

/// A damage at a place.
pub(super) fn damage(cause: Cause, place: Place, detail: impl Into<String>) -> Box<Damage> {
    Box::new(Damage {
        cause,
        place,
        detail: detail.into(),
    })
}

/// A whole file as a place.
pub(super) fn at_file(file: &str) -> Place {
    Place {
        file: file.into(),
        ..Place::default()
    }
}
