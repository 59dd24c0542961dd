//! Why a judge could not be opened.

use std::path::PathBuf;

use ksmith_box::BoxError;
use ksmith_task::{BindError, CandidateError};
use ksmith_worker::build::BuildError;

use crate::reference::ReferenceError;

/// Why *we* cannot judge. A failing candidate is never an error: it is a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// The reference, a generator or a checker.
    #[error("the task's reference")]
    Reference(#[from] ReferenceError),
    /// The baseline is no candidate.
    #[error("the baseline in `{path}`")]
    Baseline {
        /// Its folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: CandidateError,
    },
    /// The task names no baseline for this backend.
    #[error("the task names no baseline for this backend: add `baseline = {{ {0} = \"..\" }}`")]
    NoBaseline(&'static str),
    /// The baseline fails a gate that every candidate must pass.
    #[error("the baseline does not pass its own task: {code} ({evidence})")]
    BaselineFails {
        /// Stable `gate/cause` string.
        code: String,
        /// What was seen.
        evidence: String,
    },
    /// A workload that cannot be bound.
    #[error("workload `{name}`")]
    Workload {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: BindError,
    },
    /// Shapes that the contract wants and nothing satisfies.
    #[error("no shape satisfies the contract: {0}")]
    Shapes(String),
    /// The compiler is missing or could not be boxed.
    #[error("could not compile")]
    Build(#[from] BuildError),
    /// The box could not be made.
    #[error("could not make a box")]
    Box(#[from] BoxError),
    /// A recorded trace that cannot be read.
    #[error("trace `{path}`: {message}")]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Something else that this build cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// A worker failed on our side.
    #[error("a worker failed: {0}")]
    Worker(String),
    /// It was asked to leave off.
    #[error("the judge was asked to leave off")]
    Halted,
    /// An operating system call of ours failed.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

impl JudgeError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
