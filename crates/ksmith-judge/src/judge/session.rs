//! An open judge.

use ksmith_ledger::{RevealedSeed, SeedCommitment, Verdict};
use ksmith_task::{Candidate, Instance};

use super::{JudgeError, JudgeOptions};
use crate::bench::Report;

/// Judges candidates for one task instance.
#[derive(Debug)]
pub struct Judge {
    instance: Instance,
    options: JudgeOptions,
    report: Option<Report>,
}

impl Judge {
    /// Compiles reference and baseline, and checks that the baseline passes its own task.
    ///
    /// # Errors
    /// When we cannot judge: see [`JudgeError`].
    pub fn open(instance: &Instance, options: JudgeOptions) -> Result<Self, JudgeError> {
        let _ = (&instance, &options);
        Err(JudgeError::Unsupported("the judge is not built yet".to_owned()))
    }

    /// The quick pass: policy, compile, static, smoke, one dev case, a quick bench. It only rejects: a candidate that
    /// stays in gets `revise`.
    pub fn screen(&mut self, candidate: &Candidate) -> Verdict {
        let _ = (candidate, &self.instance, &self.options);
        unreachable!("a judge cannot be opened yet")
    }

    /// The full pass: every gate, decision, confirmation.
    pub fn score(&mut self, candidate: &Candidate) -> Verdict {
        self.screen(candidate)
    }

    /// Makes an accepted candidate the performance reference of the verdicts to come.
    ///
    /// # Errors
    /// When it cannot be built again.
    pub fn set_champion(&mut self, candidate: &Candidate) -> Result<(), JudgeError> {
        let _ = candidate;
        Ok(())
    }

    /// Registers the flag control: the baseline's source under the best flag set.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn set_flag_control(&mut self, candidate: &Candidate) -> Result<(), JudgeError> {
        let _ = candidate;
        Ok(())
    }

    /// The measurement behind the last verdict of [`Judge::score`], with its raw samples.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Commitments to the secrets drawn so far; each stands in the ledger before its use ends.
    pub fn commitments(&self) -> Vec<SeedCommitment> {
        Vec::new()
    }

    /// All secrets in clear, for the closing record.
    pub fn reveal(&self) -> Vec<RevealedSeed> {
        Vec::new()
    }
}
