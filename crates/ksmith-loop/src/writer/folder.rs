//! A writer that hands out candidate folders which exist already, in the order of their names.

use std::path::{Path, PathBuf};

use ksmith_task::{Brief, Proposal, chain};

use super::{Direction, Writer, WriterError};

/// Hands out the folders below one folder that hold a `candidate.toml`.
#[derive(Debug)]
pub struct FolderWriter {
    root: PathBuf,
}

impl FolderWriter {
    /// Candidates lie below `root`, or `root` is one itself.
    ///
    /// # Errors
    /// When there is none: nothing could ever be proposed.
    pub fn new(root: &Path) -> Result<Self, WriterError> {
        let writer = Self {
            root: root.to_owned(),
        };
        let found = writer.folders().map(|folders| folders.len());
        if matches!(found, Ok(1..)) {
            return Ok(writer);
        }
        let what = match found {
            Ok(_) => format!("no folder with a `candidate.toml` lies in `{}`", root.display()),
            Err(error) => chain(&error),
        };
        Err(WriterError::Usage {
            what,
            fix: "Name a candidate's folder, or a folder of such folders: `--writer folder:PATH`.".into(),
        })
    }

    fn folders(&self) -> Result<Vec<PathBuf>, WriterError> {
        if self.root.join("candidate.toml").is_file() {
            return Ok(vec![self.root.clone()]);
        }
        let failed = |source| WriterError::Io {
            what: "read folder",
            path: self.root.clone(),
            source,
        };
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&self.root).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.join("candidate.toml").is_file() {
                folders.push(path);
            }
        }
        folders.sort();
        Ok(folders)
    }
}

fn name_of(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| "candidate".into(), |name| name.to_string_lossy().into_owned())
}

impl Writer for FolderWriter {
    fn name(&self) -> String {
        format!("folder:{}", self.root.display())
    }

    fn directions(&mut self, _: &Brief) -> Result<Vec<Direction>, WriterError> {
        let folders = self.folders()?;
        let directions = folders
            .iter()
            .map(|folder| Direction {
                name: name_of(folder),
                idea: "a candidate that exists already".into(),
                value: 1.0,
                risk: "nothing is known of it before it is judged".into(),
            })
            .collect();
        Ok(directions)
    }

    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        let tried = |folder: &PathBuf| brief.history.iter().any(|past| past.direction == name_of(folder));
        Ok(self
            .folders()?
            .into_iter()
            .filter(|folder| !tried(folder))
            .take(wanted.min(1))
            .map(|folder| Proposal {
                hypothesis: format!("`{}`, as it exists already", name_of(&folder)),
                predicted_gain: None,
                direction: name_of(&folder),
                parent: None,
                folder,
            })
            .collect())
    }
}
