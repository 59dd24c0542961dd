//! Whoever proposes candidates: a brief in, candidate folders out.
//!
//! A writer has no way to record, judge or promote anything. Everything it needs to go on after a crash is in the
//! brief (its history and its seed), so writers hold no state that a run would have to save.

mod agency;
mod api;
mod cli;
mod desk;
mod folder;
mod known;
mod replay;
mod search;
mod verbs;

use std::path::PathBuf;

pub use api::ApiWriter;
pub use cli::CliWriter;
pub use folder::FolderWriter;
use ksmith_agents::process::Statement;
use ksmith_task::{Brief, Proposal};
pub use replay::ReplayWriter;
pub use search::SearchWriter;

use crate::ModelError;

/// A direction worth trying, as the draft ranks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// Its name, as proposals cite it.
    pub name: String,
    /// What is expected and why, in one sentence.
    pub idea: String,
    /// Expected gain over the baseline, as a ratio of times.
    pub value: f64,
    /// What could go wrong, in one sentence.
    pub risk: String,
}

/// Why a writer gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriterError {
    /// A file operation failed.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// What was asked for is not there.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do.
        fix: String,
    },
    /// This machine lacks something that the writer needs.
    #[error("{what}")]
    Environment {
        /// What is missing.
        what: String,
        /// What to do.
        fix: String,
    },
    /// The writer failed.
    #[error("the writer failed: {0}")]
    Failed(String),
}

impl From<ModelError> for WriterError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Usage { what, fix } => Self::Usage { what, fix },
            ModelError::NoKey { what, fix } => Self::Environment { what, fix },
            ModelError::Prices { path, source } => Self::Io {
                what: "read",
                path,
                source,
            },
            ModelError::Gateway(what) => Self::Failed(what),
        }
    }
}

/// Whoever proposes candidates. It may be asked on another thread than the one that made it.
pub trait Writer: Send {
    /// The name that stands in the records.
    fn name(&self) -> String;

    /// What a person should know before it starts, one sentence each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Directions for the draft, best first.
    ///
    /// # Errors
    /// When the writer itself fails.
    fn directions(&mut self, brief: &Brief) -> Result<Vec<Direction>, WriterError>;

    /// Proposes up to `wanted` candidates, each in a folder below `brief.out`. None means that nothing is left.
    ///
    /// All of one call test one direction, so that a round is one try of it. `brief.notes` names the directions that
    /// are closed; proposals for those are discarded.
    ///
    /// # Errors
    /// When the writer itself fails; that ends the run as if nothing were left, with a note.
    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError>;

    /// What it said beside the files of its last proposals. Nothing of it is evidence.
    fn statement(&mut self) -> Statement {
        Statement::default()
    }
}

/// Stands in while the writer is busy elsewhere.
#[derive(Debug)]
pub(crate) struct Absent;

impl Writer for Absent {
    fn name(&self) -> String {
        "absent".into()
    }

    fn directions(&mut self, _: &Brief) -> Result<Vec<Direction>, WriterError> {
        Ok(Vec::new())
    }

    fn propose(&mut self, _: &Brief, _: usize) -> Result<Vec<Proposal>, WriterError> {
        Ok(Vec::new())
    }
}

/// Threads that a candidate may use: the policy's, else all CPUs but the judge's own.
pub(crate) fn threads(instance: &ksmith_task::Instance) -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let spare = u32::try_from(cpus.saturating_sub(1).max(1)).unwrap_or(1);
    instance.task().contract().policy.threads.unwrap_or(spare)
}
