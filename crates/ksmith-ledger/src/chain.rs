//! The writer: appends records to a chain and syncs each before the next step begins.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use ksmith_task::Digest;
use serde_json::Value;

use crate::object::sync_folder;
use crate::verify::{self, Damage};
use crate::{
    BlobRef, Entry, FORMAT_VERSION, GENESIS, Interrupted, LEDGER_FILE, ObjectError, ObjectStore, Record,
    Torn, canonical,
};

/// Where record times come from; a trait so that tests can script it.
pub trait Clock: Send {
    /// The time now, RFC 3339 in UTC with milliseconds.
    fn now(&self) -> String;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> String {
        format!("{:.3}", jiff::Timestamp::now())
    }
}

/// Why the ledger could not be written or opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The file system refused.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The run folder already holds a ledger.
    #[error("`{}` already exists: a run is never started over an old record", .0.display())]
    Exists(PathBuf),
    /// Another process writes to this ledger.
    #[error("`{}` is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The record was changed or damaged.
    #[error("the record is damaged: {0}")]
    Damaged(Box<Damage>),
    /// The run is over.
    #[error("the run is closed: nothing is added to a closed record")]
    Closed,
    /// An earlier write failed and could not be undone.
    #[error("an earlier write to the ledger failed and could not be undone; resume the run")]
    Poisoned,
    /// A body that is no JSON.
    #[error("a `{kind}` record cannot be written as JSON")]
    Body {
        /// The kind.
        kind: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// A record names a blob that was not stored first.
    #[error("a `{kind}` record names object {blob}, which is not in the store")]
    UnknownBlob {
        /// The kind.
        kind: &'static str,
        /// The object.
        blob: Digest,
    },
    /// The object store failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// The ledger of one run, open for writing by this process alone.
pub struct Ledger {
    file: File,
    path: PathBuf,
    run_dir: PathBuf,
    objects: ObjectStore,
    clock: Box<dyn Clock>,
    /// Length of the file up to the last whole record.
    length: u64,
    next_seq: u64,
    head: Digest,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Poisoned,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger")
            .field("path", &self.path)
            .field("next_seq", &self.next_seq)
            .finish_non_exhaustive()
    }
}

impl Ledger {
    /// Starts the ledger of a new run; makes the folder if needed.
    pub fn create(run_dir: &Path) -> Result<Self, LedgerError> {
        Self::create_with_clock(run_dir, Box::new(SystemClock))
    }

    /// As [`create`](Self::create), with times from `clock`.
    pub fn create_with_clock(run_dir: &Path, clock: Box<dyn Clock>) -> Result<Self, LedgerError> {
        std::fs::create_dir_all(run_dir).map_err(io_error("create", run_dir))?;
        let path = run_dir.join(LEDGER_FILE);
        let file = match OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LedgerError::Exists(path));
            }
            Err(error) => return Err(io_error("create", &path)(error)),
        };
        lock(&file, &path)?;
        sync_folder(run_dir)?;
        if let Some(parent) = run_dir.parent().filter(|parent| parent.is_dir()) {
            sync_folder(parent)?;
        }
        Ok(Self {
            file,
            path,
            run_dir: run_dir.to_owned(),
            objects: ObjectStore::new(run_dir),
            clock,
            length: 0,
            next_seq: 0,
            head: GENESIS,
            state: State::Open,
        })
    }

    /// Opens the ledger of an earlier run, checks the whole chain, and goes on behind its last record.
    ///
    /// A half-written last line (the process died while writing it) is moved to the object store and an
    /// `interrupted` record says so; any other damage is an error.
    pub fn open(run_dir: &Path) -> Result<Self, LedgerError> {
        Self::open_with_clock(run_dir, Box::new(SystemClock))
    }

    /// As [`open`](Self::open), with times from `clock`.
    pub fn open_with_clock(run_dir: &Path, clock: Box<dyn Clock>) -> Result<Self, LedgerError> {
        let path = run_dir.join(LEDGER_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&path)
            .map_err(io_error("open", &path))?;
        lock(&file, &path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        let scan = verify::scan(&bytes);
        if let Some(damage) = scan.damage {
            return Err(LedgerError::Damaged(Box::new(damage)));
        }
        let closed = scan
            .records
            .last()
            .is_some_and(|record| record.kind == crate::Kind::Closed);
        let mut ledger = Self {
            file,
            path,
            run_dir: run_dir.to_owned(),
            objects: ObjectStore::new(run_dir),
            clock,
            length: scan.whole_bytes,
            next_seq: scan.records.len() as u64,
            head: scan.records.last().map_or(GENESIS, |record| record.hash),
            state: if closed { State::Closed } else { State::Open },
        };
        if let Some(torn) = scan.torn(&bytes) {
            let line = ledger.objects.put(torn)?;
            ledger.cut_back()?;
            // An empty chain has to begin with `run-opened`; there is nothing yet that could be called interrupted.
            if ledger.next_seq > 0 {
                let torn = Torn {
                    offset: ledger.length,
                    line,
                };
                ledger.append(Interrupted {
                    reason: "torn last line".into(),
                    torn: Some(torn),
                })?;
            }
        }
        Ok(ledger)
    }

    /// Appends a record and returns once it is on disk.
    ///
    /// Blobs that the body names must be in the object store already.
    pub fn append(&mut self, entry: impl Into<Entry>) -> Result<Record, LedgerError> {
        match self.state {
            State::Open => {}
            State::Closed => return Err(LedgerError::Closed),
            State::Poisoned => return Err(LedgerError::Poisoned),
        }
        let entry = entry.into();
        let kind = entry.kind();
        let body = entry.body().map_err(|source| LedgerError::Body {
            kind: kind.name(),
            source,
        })?;
        if let Some(blob) = missing_blob(&body, &self.objects) {
            return Err(LedgerError::UnknownBlob {
                kind: kind.name(),
                blob,
            });
        }
        let (seq, prev, time) = (self.next_seq, self.head, self.clock.now());
        let mut line = format!(
            r#"{{"v":{FORMAT_VERSION},"seq":{seq},"time":{},"kind":"{kind}","body":{},"prev":"{prev}"}}"#,
            Value::String(time.clone()),
            canonical(&body),
        );
        let hash = Digest::of(line.as_bytes());
        line.pop();
        line.push_str(&format!(",\"hash\":\"{hash}\"}}\n"));
        self.write(line.as_bytes())?;
        self.next_seq += 1;
        self.head = hash;
        if kind == crate::Kind::Closed {
            self.state = State::Closed;
        }
        Ok(Record {
            v: FORMAT_VERSION,
            seq,
            time,
            kind,
            body,
            prev,
            hash,
        })
    }

    fn write(&mut self, line: &[u8]) -> Result<(), LedgerError> {
        match self.file.write_all(line).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Part of the line may be in the file (a full disk, say): without the cut, the next record would
                // be glued to it.
                self.cut_back()?;
                Err(io_error("write", &self.path)(source))
            }
        }
    }

    fn cut_back(&mut self) -> Result<(), LedgerError> {
        let cut = self
            .file
            .set_len(self.length)
            .and_then(|()| self.file.seek(SeekFrom::End(0)))
            .and_then(|_| self.file.sync_all());
        cut.map_err(|source| {
            self.state = State::Poisoned;
            io_error("repair", &self.path)(source)
        })
    }

    /// Hash of the last record; [`GENESIS`] in an empty ledger.
    pub fn head(&self) -> Digest {
        self.head
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.next_seq
    }

    /// Whether the closing record is written.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The run's object store.
    pub fn objects(&self) -> &ObjectStore {
        &self.objects
    }

    /// The run's folder.
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }
}

fn lock(file: &File, path: &Path) -> Result<(), LedgerError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(LedgerError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(io_error("lock", path)(source)),
    }
}

/// The first blob named in `body` that the store lacks.
fn missing_blob(body: &Value, objects: &ObjectStore) -> Option<Digest> {
    match body {
        Value::Object(map) => {
            if let Ok(blob) = serde_json::from_value::<BlobRef>(body.clone()) {
                return (!objects.contains(blob)).then_some(blob.blob);
            }
            if let Ok(tree) = serde_json::from_value::<crate::TreeRef>(body.clone()) {
                return (!objects.path(tree.tree).is_file()).then_some(tree.tree);
            }
            map.values().find_map(|value| missing_blob(value, objects))
        }
        Value::Array(items) => items.iter().find_map(|value| missing_blob(value, objects)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn io_error<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> LedgerError + 'a {
    move |source| LedgerError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
