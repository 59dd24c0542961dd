//! The chain itself: every line, from bytes.

use ksmith_task::Digest;
use serde::Deserialize;
use serde_json::Value;

use super::damage::{Cause, Damage, Place};
use crate::{Entry, FORMAT_VERSION, GENESIS, Kind, LEDGER_FILE, Record};

/// What the bytes of a ledger hold, up to the first damage.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The records before the first damage.
    pub records: Vec<Record>,
    /// Byte offset at which each of them begins.
    pub offsets: Vec<u64>,
    /// Bytes up to and including the last line feed.
    pub whole_bytes: u64,
    /// Bytes behind the last line feed: a line that was being written when the process died.
    pub torn_bytes: u64,
    /// The first damage.
    pub damage: Option<Damage>,
}

impl Scan {
    /// The half-written last line, if there is one.
    pub fn torn<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        (self.torn_bytes > 0)
            .then(|| bytes.get(usize::try_from(self.whole_bytes).ok()?..))
            .flatten()
    }
}

/// Reads a ledger's bytes and checks each line: form, hash, number, link, body, place of its kind.
pub fn scan(bytes: &[u8]) -> Scan {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |position| position + 1);
    let mut scan = Scan {
        records: Vec::new(),
        offsets: Vec::new(),
        whole_bytes: whole as u64,
        torn_bytes: (bytes.len() - whole) as u64,
        damage: None,
    };
    let mut offset = 0;
    for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
        let before = scan.records.last();
        match read_line(&line[..line.len() - 1], scan.records.len() as u64, before) {
            Ok(record) => {
                scan.records.push(record);
                scan.offsets.push(offset);
            }
            Err(fault) => {
                scan.damage = Some(fault.at(scan.records.len() as u64, offset));
                return scan;
            }
        }
        offset += line.len() as u64;
    }
    let closed = scan
        .records
        .last()
        .is_some_and(|record| record.kind == Kind::Closed);
    if closed && scan.torn_bytes > 0 {
        let fault = Fault::new(Cause::OutOfPlace, 0, "bytes follow the closing record".into());
        scan.damage = Some(fault.at(scan.records.len() as u64, offset));
    }
    scan
}

/// Damage within a line, before its place in the file is known.
struct Fault {
    cause: Cause,
    /// Byte within the line.
    column: u64,
    detail: String,
}

impl Fault {
    fn new(cause: Cause, column: usize, detail: String) -> Self {
        Self {
            cause,
            column: column as u64,
            detail,
        }
    }

    fn at(self, index: u64, offset: u64) -> Damage {
        Damage {
            cause: self.cause,
            place: Place {
                file: LEDGER_FILE.into(),
                line: Some(index + 1),
                seq: Some(index),
                offset: Some(offset + self.column),
                object: None,
            },
            detail: self.detail,
        }
    }
}

/// Length of `,"hash":"` + 64 digits + `"}`.
const TAIL: usize = 9 + 64 + 2;

fn read_line(line: &[u8], index: u64, before: Option<&Record>) -> Result<Record, Fault> {
    let record: Record = match serde_json::from_slice(line) {
        Ok(record) => record,
        Err(error) => return Err(unreadable(line, &error)),
    };
    if record.v != FORMAT_VERSION {
        return Err(later(record.v));
    }
    let fields = line
        .len()
        .checked_sub(TAIL)
        .map(|end| &line[..end])
        .unwrap_or_default();
    let found = Digest::of(&[fields, b"}"].concat());
    if found != record.hash {
        return Err(Fault::new(
            Cause::HashMismatch,
            0,
            format!(
                "the line hashes to {}, its `hash` says {}: it was changed",
                found.short(),
                record.hash.short()
            ),
        ));
    }
    let rebuilt = rebuild(&record);
    if rebuilt.as_bytes() != line {
        let column = rebuilt.bytes().zip(line).take_while(|(a, b)| a == *b).count();
        return Err(Fault::new(
            Cause::NotCanonical,
            column,
            "the line is not in canonical form".into(),
        ));
    }
    if record.seq != index {
        return Err(Fault::new(
            Cause::OutOfOrder,
            0,
            format!(
                "record {} stands where record {index} belongs: swapped, removed or repeated",
                record.seq
            ),
        ));
    }
    let prev = before.map_or(GENESIS, |record| record.hash);
    if record.prev != prev {
        return Err(Fault::new(
            Cause::ChainBroken,
            0,
            format!(
                "`prev` is {}, the record before has {}: it was exchanged",
                record.prev.short(),
                prev.short()
            ),
        ));
    }
    let entry = record.entry().map_err(|error| {
        Fault::new(
            Cause::BadBody,
            0,
            format!("the body is no `{}`: {error}", record.kind),
        )
    })?;
    place(&record, &entry, before)?;
    Ok(record)
}

fn unreadable(line: &[u8], error: &serde_json::Error) -> Fault {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v }) if v > FORMAT_VERSION => later(v),
        _ => Fault::new(
            Cause::NotARecord,
            error.column().saturating_sub(1).min(line.len()),
            format!("the line is no record: {error}"),
        ),
    }
}

fn later(version: u32) -> Fault {
    Fault::new(
        Cause::UnknownVersion,
        0,
        format!("written in format version {version}; this program reads version {FORMAT_VERSION}"),
    )
}

fn place(record: &Record, entry: &Entry, before: Option<&Record>) -> Result<(), Fault> {
    let out_of_place = |detail: &str| Err(Fault::new(Cause::OutOfPlace, 0, detail.into()));
    let opens = record.kind == Kind::RunOpened;
    match before {
        None if !opens => return out_of_place("the first record is not `run-opened`"),
        Some(_) if opens => return out_of_place("`run-opened` stands behind the first record"),
        Some(before) if before.kind == Kind::Closed => {
            return out_of_place("a record follows the closing record");
        }
        _ => {}
    }
    if let Entry::Closed(closed) = entry
        && (closed.records != record.seq || closed.head != record.prev)
    {
        return Err(Fault::new(
            Cause::ClosingMismatch,
            0,
            format!(
                "the closing record speaks of {} records, {} stand before it",
                closed.records, record.seq
            ),
        ));
    }
    Ok(())
}

/// The line as it has to look, from the record's fields.
fn rebuild(record: &Record) -> String {
    let mut line = String::new();
    line.push_str(&format!("{{\"v\":{},\"seq\":{},\"time\":", record.v, record.seq));
    compact(&Value::String(record.time.clone()), &mut line);
    line.push_str(&format!(",\"kind\":\"{}\",\"body\":", record.kind));
    compact(&record.body, &mut line);
    line.push_str(&format!(
        ",\"prev\":\"{}\",\"hash\":\"{}\"}}",
        record.prev, record.hash
    ));
    line
}

pub(super) fn compact(value: &Value, line: &mut String) {
    let separator = |line: &mut String, first: &mut bool| {
        if !std::mem::take(first) {
            line.push(',');
        }
    };
    let mut first = true;
    match value {
        Value::Object(map) => {
            line.push('{');
            let sorted: std::collections::BTreeMap<&str, &Value> =
                map.iter().map(|(key, value)| (key.as_str(), value)).collect();
            for (key, value) in sorted {
                separator(line, &mut first);
                compact(&Value::String(key.to_owned()), line);
                line.push(':');
                compact(value, line);
            }
            line.push('}');
        }
        Value::Array(items) => {
            line.push('[');
            for item in items {
                separator(line, &mut first);
                compact(item, line);
            }
            line.push(']');
        }
        scalar => line.push_str(&scalar.to_string()),
    }
}
