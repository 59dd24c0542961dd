//! The chain that the other checks look at, and the files beside it.

use std::path::Path;
use std::{fs, io};

use super::damage::{Cause, Checked, Place, at_file, damage};
use super::scan::Scan;
use crate::{LEDGER_FILE, Record, RunOpened};

/// The lines of a ledger, with what the first of them says.
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

/// Reads a file of the run; `None` where there is none.
pub(super) fn read(run_dir: &Path, name: &str, cause: Cause) -> Checked<Option<Vec<u8>>> {
    match fs::read(run_dir.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(damage(cause, at_file(name), format!("cannot be read: {error}"))),
    }
}
