//! Several candidates beside the champion: interleaved in fresh workers, medians over rounds.
//!
//! It orders candidates that the quick pass could not tell apart and says nothing else: the cases are visible ones, no
//! secret is used, and whatever comes first still goes through a full pass. Every call's outputs are checked.

use std::time::{Duration, Instant};

use ksmith_ledger::Gate;
use ksmith_task::chain;

use super::context::{Built, End, blamed};
use super::measure::deadline;
use super::runner::{Runner, RunnerError, Setup, WorkerOptions};
use crate::cases::{Case, CaseSpec, Plan};
use crate::codes::code;
use crate::judge::{Halt, JudgeError};
use crate::reference::{Checkers, Oracle};
use crate::statistics::median;

/// Most rounds; each arm runs one lane per workload in each.
const ROUNDS: u32 = 15;
/// Fewest rounds, however long they take: a median of fewer is none.
const LEAST: u32 = 3;
/// After this time no further round begins.
const ENOUGH: Duration = Duration::from_millis(3500);
/// Most timed calls in one lane, after one that warms up.
const CALLS: u32 = 3;
/// Cases of the other visible uses have lower numbers, so every call meets fresh inputs.
const FIRST_CASE: u64 = 1 << 16;

/// A workload on which the arms are compared.
pub(crate) struct Common {
    pub(crate) weight: f64,
    pub(crate) champion_ns: u64,
    /// Calls that make up a lane of this length by the bench's own rule.
    pub(crate) calls: u32,
    pub(crate) spec: CaseSpec,
}

/// What a comparison needs beside the arms.
pub(crate) struct Beside<'j> {
    pub(crate) plan: Plan<'j>,
    pub(crate) oracle: &'j mut Oracle,
    pub(crate) worker: &'j WorkerOptions,
    pub(crate) workloads: Vec<Common>,
    pub(crate) halt: Halt,
}

/// One arm: a fresh worker and the logarithms of the champion's times over its own, by workload.
struct Side {
    state: Result<Runner, String>,
    logs: Vec<Vec<f64>>,
}

impl Side {
    /// Runs a lane; an arm that fails runs no further one.
    fn lane(
        &mut self,
        cases: &[Case],
        limit: Duration,
        checkers: &Checkers,
    ) -> Result<Option<f64>, JudgeError> {
        let Ok(runner) = &mut self.state else {
            return Ok(None);
        };
        let failed = match lane(runner, cases, limit, checkers) {
            Ok(Ok(time)) => return Ok(Some(time)),
            Ok(Err(cause)) => code(Gate::Slow, cause),
            Err(error) => failure(error)?,
        };
        self.state = Err(failed);
        Ok(None)
    }
}

/// The median time of a worker's calls in nanoseconds, without the first; the inner error is the cause of a wrong answer.
fn lane(
    runner: &mut Runner,
    cases: &[Case],
    limit: Duration,
    checkers: &Checkers,
) -> Result<Result<f64, &'static str>, RunnerError> {
    let mut times = Vec::with_capacity(cases.len());
    for (number, case) in cases.iter().enumerate() {
        let setup = Setup::new(&case.spec.bound).deadline(limit);
        match runner.timed(case, setup, checkers)? {
            Ok(timed) if number > 0 => times.push(timed.ns as f64),
            Ok(_) => {}
            Err(cause) => return Ok(Err(cause)),
        }
    }
    Ok(Ok(median(&times).unwrap_or(f64::INFINITY)))
}

/// The code of a worker's own fault; anything else is ours.
fn failure(error: RunnerError) -> Result<String, JudgeError> {
    match blamed(Gate::Slow, error)? {
        End::Fail(code, _) => Ok(code),
        End::Pass(_) | End::Skipped(_) => Err(JudgeError::Worker("a fault without a cause".to_owned())),
    }
}

impl Beside<'_> {
    /// Number of rounds, and for each candidate the champion's time over its own: the weighted geometric mean over the
    /// workloads of the median over rounds. A candidate that cannot be built or fails has a code instead.
    pub(crate) fn compare(
        &mut self,
        champion: &Built,
        candidates: &[Result<Built, String>],
    ) -> Result<(u32, Vec<Result<f64, String>>), JudgeError> {
        let mut reference =
            Runner::start(champion, self.worker).map_err(|error| JudgeError::Worker(chain(&error)))?;
        let mut sides = Vec::with_capacity(candidates.len());
        for built in candidates {
            self.go_on()?;
            let state = match built {
                Ok(built) => match Runner::start(built, self.worker) {
                    Ok(runner) => Ok(runner),
                    Err(error) => Err(failure(error)?),
                },
                Err(code) => Err(code.clone()),
            };
            sides.push(Side {
                state,
                logs: vec![Vec::new(); self.workloads.len()],
            });
        }
        let began = Instant::now();
        let checkers = self.oracle.checkers();
        let mut rounds = 0;
        while rounds < ROUNDS && (rounds < LEAST || began.elapsed() < ENOUGH) {
            for at in 0..self.workloads.len() {
                self.go_on()?;
                let cases = self.cases(at, rounds)?;
                let limit = deadline(self.workloads[at].champion_ns);
                // Each round starts elsewhere and every second one runs backwards, so that no arm keeps a place.
                let arms = sides.len() + 1;
                let mut order: Vec<usize> = (0..arms).map(|arm| (arm + rounds as usize) % arms).collect();
                if !rounds.is_multiple_of(2) {
                    order.reverse();
                }
                let mut times = vec![None; arms];
                for arm in order {
                    times[arm] = match arm.checked_sub(1) {
                        Some(side) => sides[side].lane(&cases, limit, &checkers)?,
                        None => Some(
                            lane(&mut reference, &cases, limit, &checkers)
                                .map_err(|error| JudgeError::Worker(chain(&error)))?
                                .map_err(|cause| JudgeError::BaselineFails {
                                    code: code(Gate::Slow, cause),
                                    evidence: "the champion beside its rivals".to_owned(),
                                })?,
                        ),
                    };
                }
                let champion_ns = times[0].unwrap_or(f64::INFINITY);
                for (side, time) in sides.iter_mut().zip(&times[1..]) {
                    side.logs[at].extend(time.map(|time| libm::log(champion_ns / time.max(1.0))));
                }
            }
            rounds += 1;
        }
        let weights: f64 = self.workloads.iter().map(|workload| workload.weight).sum();
        let ratio = |side: Side| -> Result<f64, String> {
            side.state?;
            let medians = side.logs.iter().map(|logs| median(logs).unwrap_or(0.0));
            let sum: f64 = self
                .workloads
                .iter()
                .zip(medians)
                .map(|(w, log)| w.weight * log)
                .sum();
            Ok(libm::exp(sum / weights.max(f64::MIN_POSITIVE)))
        };
        Ok((rounds, sides.into_iter().map(ratio).collect()))
    }

    /// Fresh cases for one round: one that warms up, then those that are timed. All arms see the same.
    fn cases(&mut self, workload: usize, round: u32) -> Result<Vec<Case>, JudgeError> {
        let common = &self.workloads[workload];
        let lane = u64::from(common.calls.clamp(1, CALLS)) + 1;
        let first = FIRST_CASE + u64::from(round) * lane;
        let spec = &common.spec;
        let specs: Vec<CaseSpec> = (first..first + lane)
            .map(|number| {
                self.plan
                    .case(&spec.bound, spec.fills.clone(), &spec.stream, number)
            })
            .collect();
        super::measure::shown(self.oracle, self.worker, &specs, Some(&self.halt))
    }

    fn go_on(&self) -> Result<(), JudgeError> {
        if self.halt.is_wanted() {
            return Err(JudgeError::Halted);
        }
        Ok(())
    }
}
