//! Gate `clocks`: independent clocks agree.
//!
//! CPU time of the whole group, over totals of a second or more only (that clock may tick in 4 ms steps); and the slope
//! over several inputs revealed together, for spinning waits: it finds super-batching and work moved between calls.

use ksmith_ledger::Gate;
use ksmith_task::{Instance, chain};
use ksmith_worker::cpu::Wait;
use serde_json::json;

use super::context::{Built, End, GateEnd};
use super::judgement::judge;
use super::measure::{Timed, deadline};
use super::runner::{Runner, RunnerError, Setup, WorkerOptions};
use crate::bench::Report;
use crate::cases::{Case, Plan, Secret, dev_fills};
use crate::codes::code;
use crate::judge::JudgeError;
use crate::reference::Oracle;

/// Least total for which CPU time says anything, in seconds.
const LEAST_S: f64 = 1.0;
/// Group CPU time above so many times what the threads can use in the time awake is impossible.
const SURPLUS: f64 = 1.10;
/// Inputs revealed together.
const TOGETHER: usize = 8;
/// Longest batch, in nanoseconds.
const LONGEST_NS: u64 = 2_000_000;
/// A slope below this share of one call, in every one of so many processes, is a finding: honest slopes lie between 0.74 and
/// 1.32 (p1 to p99, measured), and beside foreign load three of them in a row were seen just below a half.
const SLOPE: f64 = 0.5;
const PROCESSES: u64 = 5;

pub(crate) fn clocks(
    instance: &Instance,
    oracle: &mut Oracle,
    secret: &Secret,
    timed: &[Timed],
    report: &Report,
    built: &Built,
    worker: &WorkerOptions,
) -> GateEnd {
    let (cpu, awake) = crate::judge::totals(report);
    let ticks = 0.004 * report.decision.record.sets.len() as f64;
    if awake >= LEAST_S && cpu > SURPLUS * awake * worker.threads as f64 + ticks {
        let evidence = json!({ "cpu_s": cpu, "awake_s": awake, "threads": worker.threads });
        return Ok(End::Fail(code(Gate::Clocks, "cpu-time"), evidence));
    }
    let short = timed.iter().enumerate().filter_map(|(index, timed)| {
        let least = crate::judge::least_ns(report, index as u32)?;
        (least * TOGETHER as u64 <= LONGEST_NS).then_some((timed, least))
    });
    let mut slopes = Vec::new();
    if worker.wait == Wait::Spin
        && let Some((timed, _)) = short.max_by_key(|(_, least)| *least)
    {
        for process in 0..PROCESSES {
            let slope = slope(
                instance,
                oracle,
                &secret.derive("slope", process),
                timed,
                built,
                worker,
            )?;
            slopes.push(slope);
            if slope >= SLOPE {
                break;
            }
        }
        if slopes.iter().all(|slope| *slope < SLOPE) {
            return Ok(End::Fail(
                code(Gate::Clocks, "slope"),
                json!({ "slopes": slopes, "limit": SLOPE }),
            ));
        }
    }
    Ok(End::Pass(
        json!({ "cpu_s": cpu, "awake_s": awake, "slopes": slopes }),
    ))
}

/// `(T(8) - T(1)) / (7 T(1))` with least times; about 1 for honest kernels.
fn slope(
    instance: &Instance,
    oracle: &mut Oracle,
    secret: &Secret,
    timed: &Timed,
    built: &Built,
    options: &WorkerOptions,
) -> Result<f64, JudgeError> {
    const ROUNDS: u64 = 4;
    let plan = Plan::hidden(instance, secret);
    let setup = Setup::new(&timed.bound).deadline(deadline(timed.champion_ns * TOGETHER as u64));
    let broken = |error: RunnerError| JudgeError::Worker(chain(&error));
    let mut runner = Runner::start(built, options).map_err(broken)?;
    let (mut one, mut all) = (u64::MAX, u64::MAX);
    for round in 0..ROUNDS {
        let mut cases: Vec<Case> = Vec::new();
        for index in 0..=TOGETHER as u64 {
            let number = round * (TOGETHER as u64 + 1) + index;
            cases.push(oracle.case(&plan.case(&timed.bound, dev_fills(&timed.bound), "slope", number))?);
        }
        // Both go through the same path, so that both begin with fresh mappings and the first call is cold in both.
        let single = runner.batch(&[&cases[0]], setup).map_err(broken)?;
        let together: Vec<&Case> = cases[1..].iter().collect();
        let batch = runner.batch(&together, setup).map_err(broken)?;
        for (slot, case) in together.iter().enumerate() {
            let outputs = runner.slot_outputs(&timed.bound, slot);
            if judge(case, &outputs, &oracle.checkers())?.failed.is_some() {
                // Wrong outputs of a batch: the work of some calls was not done.
                return Ok(0.0);
            }
        }
        one = one.min(single.ns);
        all = all.min(batch.ns);
    }
    Ok((all as f64 - one as f64) / ((TOGETHER - 1) as f64 * one.max(1) as f64))
}
