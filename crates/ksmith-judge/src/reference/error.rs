//! Why a reference, generator or checker gave no values.

use std::path::PathBuf;

use ksmith_box::{BoxError, Ended};

/// Why a trusted program gave no values. Always *our* side: the answer for a candidate is `error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The compiler refused it.
    #[error("`{path}` does not compile:\n{log}")]
    Compile {
        /// The source.
        path: PathBuf,
        /// What the compiler said, capped.
        log: String,
    },
    /// It ended while working on a case.
    #[error("`{path}` ended while it computed a case: {ended}{}", if .log.is_empty() { String::new() } else { format!("\n{}", .log) })]
    Ended {
        /// The source.
        path: PathBuf,
        /// How.
        ended: Ended,
        /// The end of its standard error, if it left any.
        log: String,
    },
    /// It took too long.
    #[error("`{path}` took more than {seconds} s for one case")]
    TimedOut {
        /// The source.
        path: PathBuf,
        /// The limit.
        seconds: u64,
    },
    /// Its interpreter is not installed.
    #[error("`{path}` needs {what}: install it, or give the reference as C")]
    Missing {
        /// The source.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// A file of a kind that this build does not run.
    #[error("`{0}` is neither `.c` nor `.py`: this tier runs no other references")]
    Unsupported(PathBuf),
    /// A tensor has the wrong number of elements.
    #[error("argument `{name}` has {got} elements, expected {want}")]
    Length {
        /// The argument.
        name: String,
        /// Elements given.
        got: usize,
        /// Elements expected.
        want: usize,
    },
    /// The box could not be made.
    #[error("the reference's box")]
    Box(#[from] BoxError),
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

impl ReferenceError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
