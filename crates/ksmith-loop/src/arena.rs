//! The judge as the loop sees it: candidates in, evidence out.
//!
//! A trait, so that tests can script verdicts and times. Whatever the judge finds about a candidate is data; an
//! [`ArenaError`] means that it could not judge at all.

pub(crate) mod evidence;
mod judge;

use std::path::{Path, PathBuf};

pub use judge::JudgeArena;
pub(crate) use judge::from_judge;
use ksmith_judge::{Halt, Ranking};
use ksmith_ledger::{Audited, Entry, RevealedSeed, SeedCommitment, Verdict};

/// A candidate with its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entrant {
    /// Its id in the run.
    pub id: String,
    /// Where its files lie.
    pub folder: PathBuf,
}

/// Who else runs in a measurement.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// The champion; absent means the baseline.
    pub champion: Option<Entrant>,
    /// The flag control, once there is one.
    pub flag_control: Option<Entrant>,
}

/// What the quick pass says.
#[derive(Debug, Clone, PartialEq)]
pub struct Screening {
    /// Whether it may go on to a full scoring.
    pub kept: bool,
    /// Stable `gate/cause` string where it leaves.
    pub code: Option<String>,
    /// Rough ratio over the champion.
    pub ratio: Option<f64>,
    /// Wall time in milliseconds.
    pub ms: f64,
    /// What a writer may learn of a failure: the compiler's words, the difference on a dev case.
    pub digest: String,
}

/// What a full pass says.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The verdict.
    pub verdict: Verdict,
    /// Records of the steps it went through (`checked`, `tested`, `benched`), in order.
    pub records: Vec<Entry>,
    /// The error rate that the confirmation was allowed.
    pub alpha: f64,
}

/// Why the judge could not judge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// The machine lacks something.
    #[error("{what}")]
    Environment {
        /// What is lacking.
        what: String,
        /// What to do.
        fix: String,
    },
    /// The task or a candidate's manifest is wrong.
    #[error("{0}")]
    Contract(String),
    /// It was asked to leave off; nothing of the step counts.
    #[error("the judge was asked to leave off")]
    Halted,
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
}

/// A step whose secrets are promised before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// The quick pass.
    Screen,
    /// A full pass or a last confirmation.
    Score,
}

/// The judge as the loop sees it.
pub trait Arena {
    /// Draws the secrets of the step to come, so that their commitments are recorded before they are used.
    ///
    /// # Errors
    /// When the judge could not draw them.
    fn promise(&mut self, step: Promise) -> Result<(), ArenaError>;

    /// Commitments to every secret drawn so far, in order.
    fn commitments(&self) -> Vec<SeedCommitment>;

    /// Every secret in clear, for the closing record.
    fn reveal(&self) -> Vec<RevealedSeed>;

    /// From now on the judge leaves off within a step when this says so, with [`ArenaError::Halted`].
    fn halt_when(&mut self, halt: Halt) {
        let _ = halt;
    }

    /// Tries the task itself: candidates that must fail, the baseline that must pass.
    ///
    /// # Errors
    /// When the judge could not judge.
    fn audit(&mut self) -> Result<Audited, ArenaError>;

    /// Proves the baseline and measures it.
    ///
    /// # Errors
    /// When the judge could not judge.
    fn baseline(&mut self, baseline: &Entrant) -> Result<Evidence, ArenaError>;

    /// Compiles candidates that will be screened next; never called while something is timed.
    fn build_ahead(&mut self, folders: &[&Path]) {
        let _ = folders;
    }

    /// The quick pass.
    ///
    /// # Errors
    /// When the judge could not judge.
    fn screen(&mut self, candidate: &Entrant, field: &Field) -> Result<Screening, ArenaError>;

    /// Times candidates beside the champion, interleaved in fresh workers: it orders them and proves nothing.
    ///
    /// # Errors
    /// When the judge could not judge.
    fn beside(&mut self, candidates: &[Entrant], field: &Field) -> Result<Ranking, ArenaError>;

    /// Every gate, the decision, and its confirmation.
    ///
    /// # Errors
    /// When the judge could not judge.
    fn score(&mut self, candidate: &Entrant, field: &Field) -> Result<Evidence, ArenaError>;

    /// The champion once more against baseline and flag control, with new processes, secrets and order.
    ///
    /// # Errors
    /// When the judge could not judge.
    fn confirm(&mut self, champion: &Entrant, field: &Field) -> Result<Evidence, ArenaError>;
}
