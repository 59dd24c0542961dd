//! Several candidates beside the champion, for whoever decides which of them is worth a full pass.

use ksmith_task::Candidate;

use super::{Judge, JudgeError};
use crate::cases::Plan;
use crate::gates::{Beside, Common};

/// What a comparison of several candidates found; a hint, never evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// How often each ran.
    pub rounds: u32,
    /// For each candidate, in the order given, the champion's time over its own, or the code of its failure.
    pub ratios: Vec<Result<f64, String>>,
}

impl Judge {
    /// Times candidates and champion on the visible workloads, interleaved in fresh workers, for a few seconds. It uses
    /// no secret, and nothing of it is evidence.
    ///
    /// # Errors
    /// When we cannot judge, or are halted; a candidate's failure is an answer.
    pub fn beside(&mut self, candidates: &[Candidate]) -> Result<Ranking, JudgeError> {
        let plan = Plan::dev(&self.instance).on(self.options.backend);
        let built = candidates
            .iter()
            .map(|candidate| {
                Ok(self
                    .compiled(candidate)?
                    .map_err(|refused| refused.code.to_owned()))
            })
            .collect::<Result<Vec<_>, JudgeError>>()?;
        let specs = plan.workloads(0)?;
        let workloads = self
            .instance
            .workloads(self.options.backend)
            .zip(specs)
            .map(|(workload, (name, spec))| {
                let champion_ns = self.champion_ns.get(&name).copied().unwrap_or(1_000_000);
                Common {
                    weight: workload.weight,
                    champion_ns,
                    calls: self.options.settings.calls(champion_ns),
                    spec,
                }
            })
            .collect();
        let (rounds, ratios) = Beside {
            plan,
            oracle: &mut self.oracle,
            worker: &self.worker,
            workloads,
            halt: self.halt.clone(),
        }
        .compare(&self.champion, &built)?;
        Ok(Ranking { rounds, ratios })
    }
}
