//! Why a box could not be made. What happens *inside* a box is never an error, see [`crate::Ended`].

use crate::Level;

/// Why a boxed process could not be started or watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoxError {
    /// The executable does not call `intercept` first, so it cannot start itself as a helper.
    #[error(
        "this executable does not call `ksmith_box::intercept` first in `main`, so it cannot start boxed processes"
    )]
    NotIntercepted,
    /// The kernel gives less isolation than the caller insists on.
    #[error("isolation `{offered}` is below the required `{required}`: {reasons}")]
    TooWeak {
        /// What the kernel gives.
        offered: Level,
        /// What the caller asked for.
        required: Level,
        /// Which layers are missing, and why.
        reasons: String,
    },
    /// The helper could not set the box up.
    #[error("could not set up the box: {step}: {reason}")]
    Setup {
        /// The step that failed.
        step: String,
        /// The operating system's words.
        reason: String,
    },
    /// A path that the box should show does not exist or cannot be named.
    #[error("the box cannot show `{path}`: {reason}")]
    Path {
        /// The path as given.
        path: String,
        /// Why not.
        reason: String,
    },
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

impl BoxError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
