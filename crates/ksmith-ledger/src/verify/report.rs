//! The whole check of a run folder, in order: chain, anchors, blobs, files beside the ledger.

use std::fs;
use std::io;
use std::path::Path;

use ksmith_task::Digest;
use serde::Serialize;

use super::damage::{Cause, Damage, Place};
use super::scan::{Scan, scan};
use super::{anchor, files, objects};
use crate::{Entry, Kind, LEDGER_FILE, PublicKey, Record, RunOpened};

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

/// Checks the run in `run_dir` and reports the first damage with its exact place.
///
/// Never fails: a folder that cannot be read is a damaged one.
pub fn verify(run_dir: &Path, options: &VerifyOptions) -> Report {
    let mut report = Report {
        run: None,
        records: 0,
        head: None,
        state: RunState::Open,
        torn_bytes: 0,
        anchors: Anchors::default(),
        certificate: None,
        objects: 0,
        object_bytes: 0,
        unreferenced_objects: 0,
        warnings: Vec::new(),
        damage: None,
    };
    if let Err(damage) = check(run_dir, options, &mut report) {
        report.damage = Some(*damage);
    }
    report
}

pub(super) type Checked<T = ()> = Result<T, Box<Damage>>;

/// A record and what it says.
pub(super) struct Chain {
    pub(super) scan: Scan,
    pub(super) opened: RunOpened,
}

impl Chain {
    pub(super) fn records(&self) -> &[Record] {
        &self.scan.records
    }

    /// Place of a record in the file.
    pub(super) fn place(&self, index: usize) -> Place {
        Place {
            file: LEDGER_FILE.into(),
            line: Some(index as u64 + 1),
            seq: Some(index as u64),
            offset: self.scan.offsets.get(index).copied(),
            object: None,
        }
    }

    /// Place of the last record.
    pub(super) fn end(&self) -> Place {
        self.place(self.records().len().saturating_sub(1))
    }
}

fn check(run_dir: &Path, options: &VerifyOptions, report: &mut Report) -> Checked {
    let bytes = read(run_dir, LEDGER_FILE, Cause::NoLedger)?
        .ok_or_else(|| damage(Cause::NoLedger, at_file(LEDGER_FILE), "there is no ledger"))?;
    let scan = scan(&bytes);
    report.records = scan.records.len() as u64;
    report.head = scan.records.last().map(|record| record.hash);
    report.torn_bytes = scan.torn_bytes;
    report.state = state(&scan);
    let opened = match scan.records.first().map(Record::entry) {
        Some(Ok(Entry::RunOpened(opened))) => Some(opened),
        _ => None,
    };
    report.run = opened.as_ref().map(|opened| opened.run.clone());
    if let Some(damage) = &scan.damage {
        return Err(Box::new(damage.clone()));
    }
    let Some(opened) = opened else {
        report
            .warnings
            .push("The ledger holds no record: the run died before its first step.".into());
        return match options.head {
            None => Ok(()),
            Some(_) => Err(damage(
                Cause::HeadMismatch,
                at_file(LEDGER_FILE),
                "the ledger is empty",
            )),
        };
    };
    let chain = Chain { scan, opened };
    if let Some(wanted) = options.run.as_ref().filter(|wanted| **wanted != chain.opened.run) {
        let detail = format!(
            "this is the record of run `{}`, not of `{wanted}`",
            chain.opened.run
        );
        return Err(damage(Cause::OtherRun, chain.place(0), detail));
    }
    anchor::seeds(&chain)?;
    anchor::head(&chain, options, report)?;
    anchor::certificate(run_dir, &chain, options, report)?;
    objects::check(run_dir, &chain, report)?;
    files::check(run_dir, &chain, report)?;
    remarks(run_dir, &chain, report);
    Ok(())
}

fn state(scan: &Scan) -> RunState {
    match scan.records.last().map(|record| record.kind) {
        Some(Kind::Closed) => RunState::Closed,
        Some(Kind::Interrupted) => RunState::Interrupted,
        _ if scan.torn_bytes > 0 => RunState::Interrupted,
        _ => RunState::Open,
    }
}

/// What is worth a word and proves nothing.
fn remarks(run_dir: &Path, chain: &Chain, report: &mut Report) {
    let name = fs::canonicalize(run_dir)
        .ok()
        .and_then(|path| path.file_name().map(|name| name.to_owned()));
    if name.is_some_and(|name| name != chain.opened.run.as_str()) {
        report.warnings.push(format!(
            "The folder does not bear the run's id, `{}`.",
            chain.opened.run
        ));
    }
    let backwards = chain
        .records()
        .windows(2)
        .find(|pair| pair[1].time < pair[0].time);
    if let Some([_, record]) = backwards {
        report
            .warnings
            .push(format!("The clock went backwards before record {}.", record.seq));
    }
}

pub(super) fn damage(cause: Cause, place: Place, detail: impl Into<String>) -> Box<Damage> {
    Box::new(Damage {
        cause,
        place,
        detail: detail.into(),
    })
}

pub(super) fn at_file(file: &str) -> Place {
    Place {
        file: file.into(),
        ..Place::default()
    }
}

/// Reads a file of the run; `None` where there is none.
pub(super) fn read(run_dir: &Path, name: &str, cause: Cause) -> Checked<Option<Vec<u8>>> {
    match fs::read(run_dir.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(damage(cause, at_file(name), format!("cannot be read: {error}"))),
    }
}
