//! What can go wrong inside the offline agent. A bad candidate is never an error here: the judge says so.

use std::path::PathBuf;

/// Why the offline agent could not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
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
    /// A structure's manifest is wrong.
    #[error("structure `{structure}`: {message}")]
    Manifest {
        /// Folder of the structure, such as `row-reduction/softmax`.
        structure: String,
        /// What is wrong.
        message: String,
    },
    /// A structure's template does not render.
    #[error("structure `{structure}` does not render with {config}")]
    Template {
        /// Folder of the structure.
        structure: String,
        /// The configuration.
        config: String,
        /// The cause.
        #[source]
        source: minijinja::Error,
    },
    /// The task's instance in the brief cannot be read.
    #[error("the brief names `{0}`, which the task does not have")]
    Instance(String),
    /// The task's contract cannot be read.
    #[error("the task of the brief")]
    Contract(#[from] ksmith_task::ContractError),
    /// The baseline or champion cannot be read.
    #[error("the candidate that the search starts from")]
    Baseline(#[source] Box<ksmith_task::CandidateError>),
    /// A line of a tuner cache is damaged.
    #[error("line {line} of `{}`: {message}", path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

impl SearchError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
