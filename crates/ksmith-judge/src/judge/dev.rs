//! Rough times on the visible workloads, for whoever writes kernels. No secret is used and nothing here is evidence.

use std::sync::Arc;

use ksmith_task::Candidate;

use super::{Judge, JudgeError};
use crate::cases::Plan;
use crate::gates::check_arm;

/// Calls per arm and workload; enough for a least time, few enough to be quick.
const CALLS: u64 = 12;
/// Cases of the other visible uses have lower numbers, so every call meets fresh inputs.
const FIRST_CASE: u64 = 64;

/// Least times of one visible workload, in nanoseconds of the judge's own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevTime {
    /// The workload's name.
    pub workload: String,
    /// The candidate.
    pub candidate_ns: u64,
    /// The champion.
    pub champion_ns: u64,
    /// The task's baseline.
    pub baseline_ns: u64,
}

/// Why a candidate has no times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevFailure {
    /// Stable `gate/cause` string.
    pub code: String,
    /// What was seen; of visible cases only.
    pub evidence: String,
}

impl Judge {
    /// Times a candidate beside champion and baseline on the visible workloads, in turns. Every call's outputs are
    /// checked.
    ///
    /// # Errors
    /// When we cannot judge; a wrong candidate is an answer.
    pub fn time_dev(
        &mut self,
        candidate: &Candidate,
    ) -> Result<Result<Vec<DevTime>, DevFailure>, JudgeError> {
        let built = match self.compiled(candidate)? {
            Ok(built) => built,
            Err(refused) => {
                return Ok(Err(DevFailure {
                    code: refused.code.to_owned(),
                    evidence: refused.stderr,
                }));
            }
        };
        let plan = Plan::dev(&self.instance).on(self.options.backend);
        let mut times = Vec::new();
        for (workload, spec) in plan.workloads(0)? {
            let cases = (FIRST_CASE..FIRST_CASE + CALLS)
                .map(|number| {
                    let spec = plan.case(&spec.bound, spec.fills.clone(), &spec.stream, number);
                    Ok(Arc::new(self.oracle.large_case(&spec)?))
                })
                .collect::<Result<Vec<_>, JudgeError>>()?;
            let mut least = [u64::MAX; 3];
            for _ in 0..2 {
                for (arm, least) in [&self.champion, &built, &self.baseline].iter().zip(&mut least) {
                    match check_arm(arm, &cases, &self.oracle, &self.worker)? {
                        // The first call of a process says little.
                        Ok(found) => {
                            *least = found.iter().skip(1).copied().fold(*least, u64::min);
                        }
                        Err((code, evidence)) => return Ok(Err(DevFailure { code, evidence })),
                    }
                }
            }
            let [champion_ns, candidate_ns, baseline_ns] = least;
            times.push(DevTime {
                workload,
                candidate_ns,
                champion_ns,
                baseline_ns,
            });
        }
        Ok(Ok(times))
    }
}
