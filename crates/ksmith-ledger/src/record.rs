//! One line of the ledger and the version of its format.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

use crate::{Entry, Kind};

/// Version of the line format; stands as `v` in each record.
pub const FORMAT_VERSION: u32 = 1;

/// What the first record's `prev` holds: 64 zeros.
pub const GENESIS: Digest = Digest::from_bytes([0; 32]);

/// Name of the ledger inside a run folder.
pub const LEDGER_FILE: &str = "ledger.jsonl";

/// One record: a line of `ledger.jsonl`.
///
/// `hash` is the SHA-256 of the line's bytes without its last field, that is of everything before `,"hash":` plus a
/// closing brace. The body is canonical JSON (see [`crate::canonical`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Format version ([`FORMAT_VERSION`]).
    pub v: u32,
    /// Position in the chain, from 0, without gaps.
    pub seq: u64,
    /// RFC 3339 time in UTC with milliseconds, read by the tool when the record was written.
    pub time: String,
    /// What happened.
    pub kind: Kind,
    /// The facts, in the shape that `kind` names.
    pub body: serde_json::Value,
    /// Hash of the record before; [`GENESIS`] in the first.
    pub prev: Digest,
    /// Hash of this record.
    pub hash: Digest,
}

impl Record {
    /// Reads the body in the shape that the kind names.
    pub fn entry(&self) -> Result<Entry, serde_json::Error> {
        Entry::parse(self.kind, &self.body)
    }

    /// The time in seconds since 1970; `None` where the text is no time.
    pub fn unix_seconds(&self) -> Option<f64> {
        let time: jiff::Timestamp = self.time.parse().ok()?;
        Some(time.as_millisecond() as f64 / 1e3)
    }
}
