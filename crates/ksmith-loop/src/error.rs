//! Why a run cannot begin or go on, with the exit code and the fix.

use std::path::{Path, PathBuf};

use ksmith_ledger::runs::ResolveError;
use ksmith_ledger::views::ViewError;
use ksmith_ledger::{CertificateError, KeyError, LedgerError, ObjectError, ReadError};
use ksmith_task::{CandidateError, ContractError, ExitCode, LockError, TypePinError};

use crate::arena::ArenaError;
use crate::memory::MemoryError;
use crate::writer::WriterError;
use crate::{ModelError, ReviewerError};

/// Why a run cannot begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The contract is wrong.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The baseline's folder is wrong.
    #[error("the baseline cannot be used")]
    Baseline(#[source] CandidateError),
    /// A candidate's folder is wrong.
    #[error("the candidate cannot be used")]
    Candidate(#[source] CandidateError),
    /// A request that does not fit the task.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do.
        fix: String,
    },
    /// The task's own audit refuses it.
    #[error("the task does not pass its own audit: {}", findings.join("; "))]
    Audit {
        /// What was found.
        findings: Vec<String>,
    },
    /// A text of ours does not pass its mechanical gate.
    #[error("the {document} does not pass its gate: {}", findings.join("; "))]
    Gate {
        /// `draft` or `plan`.
        document: &'static str,
        /// What was found.
        findings: Vec<String>,
    },
    /// The judge could not judge.
    #[error("the judge")]
    Arena(#[from] ArenaError),
    /// Something locked was edited.
    #[error("locked files changed since the run began: {}", .0.join(", "))]
    Changed(Vec<String>),
    /// No such run, or more than one.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A run's record cannot be read.
    #[error("the record")]
    Read(#[from] ReadError),
    /// Something that should be locked cannot be read.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A dtype that the task does not have.
    #[error(transparent)]
    TypePin(#[from] TypePinError),
    /// The views cannot be written.
    #[error("the views of the record")]
    View(#[from] ViewError),
    /// The certificate cannot be made.
    #[error("the certificate")]
    Certificate(#[from] CertificateError),
    /// The signing key cannot be used.
    #[error("the signing key")]
    Key(#[from] KeyError),
    /// The ledger.
    #[error("the ledger")]
    Ledger(#[from] LedgerError),
    /// The object store.
    #[error("the object store")]
    Object(#[from] ObjectError),
    /// The records contradict each other.
    #[error("the record of `{}` cannot be continued", run.display())]
    Record {
        /// The run's folder.
        run: PathBuf,
        /// Why.
        #[source]
        source: MemoryError,
    },
    /// The reviewer cannot be had, or may not review.
    #[error("the reviewer")]
    Reviewer(#[from] ReviewerError),
    /// The reviewer gave no valid answer where the run cannot begin without one.
    #[error("the reviewer gave no valid answer on the {document}: {cause}")]
    NoOpinion {
        /// `draft` or `plan`.
        document: &'static str,
        /// The stable code and what was seen.
        cause: String,
    },
    /// The writer cannot be had.
    #[error("the writer")]
    Writer(#[from] WriterError),
    /// A file operation of ours failed.
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
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
}

impl RunError {
    /// Wraps a file error with what was tried.
    pub(crate) fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Self + 'a {
        move |source| Self::Io {
            what,
            path: path.to_owned(),
            source,
        }
    }

    /// What the process tells its caller.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Contract(_)
            | Self::Baseline(_)
            | Self::Candidate(_)
            | Self::Usage { .. }
            | Self::Audit { .. }
            | Self::Resolve(_)
            | Self::TypePin(_) => ExitCode::Usage,
            Self::Arena(error) => match error {
                ArenaError::Environment { .. } => ExitCode::Environment,
                ArenaError::Halted => ExitCode::Interrupted,
                ArenaError::Contract(_) => ExitCode::Usage,
                ArenaError::Internal(_) => ExitCode::Internal,
            },
            Self::Changed(_) | Self::Record { .. } => ExitCode::Changed,
            Self::Read(error) => match error {
                ReadError::Damaged(_) | ReadError::Body { .. } => ExitCode::Changed,
                _ => ExitCode::Usage,
            },
            Self::Writer(WriterError::Usage { .. }) => ExitCode::Usage,
            Self::Reviewer(ReviewerError::Refused(_) | ReviewerError::Model(ModelError::Usage { .. })) => {
                ExitCode::Usage
            }
            Self::Reviewer(ReviewerError::Command(_) | ReviewerError::Model(_)) | Self::NoOpinion { .. } => {
                ExitCode::Environment
            }
            Self::Writer(_) | Self::View(_) | Self::Certificate(_) | Self::Key(_) => ExitCode::Environment,
            Self::Ledger(error) => match error {
                LedgerError::Damaged(_) => ExitCode::Changed,
                LedgerError::Io { .. } | LedgerError::InUse(_) => ExitCode::Environment,
                _ => ExitCode::Internal,
            },
            Self::Object(error) => match error {
                ObjectError::Missing(_) | ObjectError::Damaged { .. } => ExitCode::Changed,
                _ => ExitCode::Internal,
            },
            Self::Io { .. } | Self::Lock(_) => ExitCode::Environment,
            Self::Gate { .. } | Self::Internal(_) => ExitCode::Internal,
        }
    }

    /// What to do, where the cause is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { fix, .. }
            | Self::Arena(ArenaError::Environment { fix, .. })
            | Self::Reviewer(ReviewerError::Model(ModelError::Usage { fix, .. } | ModelError::NoKey { fix, .. }))
            | Self::Writer(WriterError::Usage { fix, .. } | WriterError::Environment { fix, .. }) => {
                Some(fix.clone())
            }
            Self::Contract(_) => {
                Some("`ksmith lint TASK` checks a contract; `ksmith new FOLDER` makes one.".into())
            }
            Self::Baseline(_) | Self::Candidate(_) => {
                Some("`ksmith check CANDIDATE --task TASK` checks a candidate's folder.".into())
            }
            Self::Audit { .. } => {
                Some("`ksmith lint TASK --audit` shows each finding with its cause; correct the task, then start a new run.".into())
            }
            Self::Reviewer(ReviewerError::Refused(_)) => Some(
                "Choose a reviewer of another vendor, name its vendor with `--reviewer-vendor`, or pass `--same-vendor`, which is recorded."
                    .into(),
            ),
            Self::NoOpinion { .. } => Some(
                "The record holds what it said. Correct the reviewer, or choose `--reviewer lint` or `none`.".into(),
            ),
            Self::Changed(_) => Some("Restore the files and resume, or start a new run.".into()),
            Self::Resolve(_) => Some("`ksmith log` lists the runs under this folder.".into()),
            Self::Ledger(LedgerError::InUse(_)) => {
                Some("Another process works on this run; wait for it.".into())
            }
            Self::Ledger(LedgerError::Damaged(_)) => Some("`ksmith verify RUN` shows the place.".into()),
            _ => None,
        }
    }
}
