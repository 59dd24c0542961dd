//! What can go wrong on a device: our error, or the candidate's fault.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A driver or compiler call that failed, or a device that is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No driver library, or no device.
    #[error("no CUDA device: {0}")]
    Unavailable(String),
    /// A driver call failed in the judge's own context.
    #[error("`{call}` failed with {name} ({code})")]
    Driver {
        /// The call.
        call: &'static str,
        /// The driver's number.
        code: i32,
        /// The driver's name for it.
        name: String,
    },
    /// An operating-system call of ours failed.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The box could not be made.
    #[error("the worker's box")]
    Box(#[from] ksmith_box::BoxError),
    /// The candidate is to blame; the worker is dead afterwards.
    #[error("the candidate {0}")]
    Fault(CudaFault),
    /// The worker is dead: an earlier call ended with a fault.
    #[error("the worker is dead: an earlier call ended with a fault")]
    Dead,
}

impl CudaError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// A fault of the candidate: data for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CudaFault {
    /// A launch or a synchronisation failed; the driver's name of the error (`CUDA_ERROR_ILLEGAL_ADDRESS`, …).
    Device {
        /// The driver call that reported it.
        call: String,
        /// The driver's number.
        code: i32,
        /// Its name.
        name: String,
    },
    /// The module could not be loaded.
    Load {
        /// The driver's words, capped.
        message: String,
    },
    /// No answer before the deadline.
    Timeout,
    /// The worker's process ended by itself.
    Ended {
        /// How.
        how: String,
    },
    /// The worker answered something that the protocol does not know.
    Protocol {
        /// What.
        what: String,
    },
}

impl fmt::Display for CudaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { call, code, name } => {
                write!(f, "made the device fail: {name} ({code}) from {call}")
            }
            Self::Load { message } => write!(f, "could not be loaded: {message}"),
            Self::Timeout => f.write_str("gave no answer in time"),
            Self::Ended { how } => write!(f, "ended its worker: {how}"),
            Self::Protocol { what } => write!(f, "broke the protocol: {what}"),
        }
    }
}
