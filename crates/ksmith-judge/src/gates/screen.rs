//! Gate `slow`: hopelessly slow candidates leave after a few calls beside the champion.
//!
//! Minimum of 16 calls at a shape where the champion takes 20-200 us; more than 1.25 times slower in two worker pairs
//! rejects (figures of the rule in `docs/statistics.md`). Cases are cached over a run, because screening only rejects.

use std::sync::Arc;
use std::time::Duration;

use ksmith_ledger::Gate;
use ksmith_task::{Backend, Bound, chain};
use serde_json::json;

use super::context::{Built, End, GateEnd, Scoring, blamed, failed, step};
use super::measure::deadline;
use super::runner::{Runner, Setup, WorkerOptions};
use crate::cases::{Case, Plan, Secret, bind, dev_fills, in_small};
use crate::codes::code;
use crate::judge::JudgeError;
use crate::reference::Oracle;

/// Timed calls per worker, after one that warms up.
pub(crate) const CALLS: usize = 16;
/// Slower than this many times the champion is hopeless.
const LIMIT: f64 = 1.25;

/// Storage to which each workload is scaled down in search of a shape that suits the screening bench.
const SMALL_KIB: [u64; 4] = [16, 64, 256, 1024];

/// Timed calls per worker on a device, after one that warms up: times from cold caches scatter by less than 1 %.
const DEVICE_CALLS: usize = 5;

/// The cached cases of the screening bench, at a shape that suits the champion.
#[derive(Debug, Clone)]
pub(crate) struct ScreenPool {
    pub(crate) cases: Arc<Vec<Case>>,
    pub(crate) champion_ns: u64,
}

/// Finds a workload, whole or in small, at which the champion takes 20-200 us, and draws its cases.
pub(crate) fn screen_pool(
    instance: &ksmith_task::Instance,
    oracle: &mut Oracle,
    secret: &Secret,
    champion: &Built,
    worker: &WorkerOptions,
    backend: Backend,
) -> Result<ScreenPool, JudgeError> {
    let plan = Plan::hidden(instance, secret).on(backend);
    if worker.device.is_some() {
        return device_pool(instance, oracle, &plan, champion, worker);
    }
    let mut shapes: Vec<Arc<Bound>> = Vec::new();
    for workload in instance.workloads(backend) {
        shapes.push(bind(instance, &workload.name, &workload.axes)?);
        shapes.extend(
            SMALL_KIB
                .iter()
                .filter_map(|kib| in_small(instance, &workload.axes, kib << 10)),
        );
    }
    shapes.sort_by_key(|bound| bound.storage_bytes());
    shapes.dedup_by(|one, other| one.axes == other.axes);
    let mut best: Option<(f64, u64, Arc<Bound>)> = None;
    for (number, bound) in shapes.into_iter().enumerate() {
        let mut runner =
            Runner::start(champion, worker).map_err(|error| JudgeError::Worker(chain(&error)))?;
        let mut least = u64::MAX;
        for call in 0..4 {
            let spec = plan.case(&bound, dev_fills(&bound), &format!("screen trial {number}"), call);
            let case = oracle.case(&spec)?;
            let answer = runner
                .call(&case, Setup::new(&bound))
                .map_err(|error| JudgeError::Worker(chain(&error)))?;
            least = least.min(answer.call.ns);
        }
        // Distance from 60 us on a logarithmic scale.
        let distance = libm::fabs(libm::log(least.max(1) as f64 / 60_000.0));
        if best.as_ref().is_none_or(|(nearest, ..)| distance < *nearest) {
            best = Some((distance, least, bound));
        } else if least > 200_000 {
            break;
        }
    }
    let Some((_, champion_ns, bound)) = best else {
        return Err(JudgeError::Shapes("no shape for the screening bench".to_owned()));
    };
    let cases = (0..=CALLS as u64)
        .map(|number| Ok(oracle.case(&plan.case(&bound, dev_fills(&bound), "screen bench", number))?))
        .collect::<Result<Vec<_>, JudgeError>>()?;
    Ok(ScreenPool {
        cases: Arc::new(cases),
        champion_ns,
    })
}

/// The pool on a device: the workload of the greatest weight at its own shape, since the best launch depends on it, and
/// the champion's time there.
fn device_pool(
    instance: &ksmith_task::Instance,
    oracle: &mut Oracle,
    plan: &Plan<'_>,
    champion: &Built,
    worker: &WorkerOptions,
) -> Result<ScreenPool, JudgeError> {
    let mut shapes = Vec::new();
    for workload in instance.workloads(Backend::Cuda) {
        shapes.push((workload.weight, bind(instance, &workload.name, &workload.axes)?));
    }
    let heaviest = shapes.into_iter().max_by(|(one, a), (other, b)| {
        one.total_cmp(other)
            .then(a.storage_bytes().cmp(&b.storage_bytes()))
    });
    let Some((_, bound)) = heaviest else {
        return Err(JudgeError::Shapes("the task has no workload for CUDA".to_owned()));
    };
    let specs: Vec<_> = (0..=DEVICE_CALLS as u64)
        .map(|number| plan.case(&bound, dev_fills(&bound), "screen bench", number))
        .collect();
    let cases = super::measure::shown(oracle, worker, &specs, None)?;
    let pool = ScreenPool {
        cases: Arc::new(cases),
        champion_ns: 1_000_000,
    };
    retimed(pool, oracle, champion, worker)
}

/// The same pool on a device with the time of another champion.
pub(crate) fn retimed(
    mut pool: ScreenPool,
    oracle: &Oracle,
    champion: &Built,
    worker: &WorkerOptions,
) -> Result<ScreenPool, JudgeError> {
    let mut runner = Runner::start(champion, worker).map_err(|error| JudgeError::Worker(chain(&error)))?;
    let timed = least_of(&mut runner, &pool, Duration::from_secs(5), oracle)
        .map_err(|error| JudgeError::Worker(chain(&error)))?;
    pool.champion_ns = timed.map_err(|cause| JudgeError::BaselineFails {
        code: code(Gate::Slow, cause),
        evidence: "the champion at the screening shape".to_owned(),
    })?;
    Ok(pool)
}

/// The least time of a worker over the pool, without the first call; the inner error is the cause of a wrong answer.
fn least_of(
    runner: &mut Runner,
    pool: &ScreenPool,
    limit: Duration,
    oracle: &Oracle,
) -> Result<Result<u64, &'static str>, super::runner::RunnerError> {
    let mut least = u64::MAX;
    for (number, case) in pool.cases.iter().enumerate() {
        let setup = Setup::new(&case.spec.bound).deadline(limit);
        match runner.timed(case, setup, &oracle.checkers())? {
            Ok(timed) if number > 0 => least = least.min(timed.ns),
            Ok(_) => {}
            Err(cause) => return Ok(Err(cause)),
        }
    }
    Ok(Ok(least))
}

/// The quick bench on a device: one worker at a time beside the champion's time of this run.
fn slow_on_device(scoring: &mut Scoring<'_>, champion: &Built, pool: &ScreenPool) -> GateEnd {
    if scoring.library()?.digest() == champion.digest() {
        // Equal code needs no clock.
        return Ok(End::Pass(json!({
            "time_over_champion": [1.0], "candidate_ns": pool.champion_ns, "champion_ns": pool.champion_ns,
            "code": "the champion's own",
        })));
    }
    let device = scoring.worker.device.clone();
    let mut ratios = Vec::new();
    let mut end = None;
    for _ in 0..2 {
        let mut runner = step!(scoring.start(Gate::Slow));
        if let Some(device) = &device {
            device.settle();
        }
        let _lock = device.as_deref().map(crate::device::Device::lock).transpose()?;
        let ours = match least_of(&mut runner, pool, deadline(pool.champion_ns), scoring.oracle) {
            Ok(Ok(ours)) => ours,
            Ok(Err(cause)) => {
                end = Some(End::Fail(code(Gate::Slow, cause), json!({ "class": cause })));
                break;
            }
            Err(error) => {
                step!(failed::<()>(Gate::Slow, error));
                continue;
            }
        };
        let ratio = ours as f64 / pool.champion_ns.max(1) as f64;
        ratios.push(ratio);
        if ratio <= LIMIT {
            end = Some(End::Pass(json!({
                "time_over_champion": ratios, "candidate_ns": ours, "champion_ns": pool.champion_ns,
            })));
            break;
        }
    }
    if let Some(device) = &device {
        // The next candidate's workers start while this one is written down.
        device.prepare(1);
    }
    Ok(end.unwrap_or_else(|| {
        End::Fail(
            code(Gate::Slow, "slower"),
            json!({ "time_over_champion": ratios, "limit": LIMIT }),
        )
    }))
}

/// The least times of candidate and champion, side by side in fresh workers.
fn side_by_side(
    scoring: &mut Scoring<'_>,
    champion: &Built,
    pool: &ScreenPool,
) -> super::context::Step<(u64, u64)> {
    let mut candidate = match scoring.start(Gate::Slow)? {
        Ok(runner) => runner,
        Err(end) => return Ok(Err(end)),
    };
    let mut other =
        Runner::start(champion, scoring.worker).map_err(|error| JudgeError::Worker(chain(&error)))?;
    let limit: Duration = deadline(pool.champion_ns);
    let (mut ours, mut theirs) = (u64::MAX, u64::MAX);
    for (number, case) in pool.cases.iter().enumerate() {
        let setup = Setup::new(&case.spec.bound).deadline(limit);
        let theirs_now = other
            .call(case, setup)
            .map_err(|error| JudgeError::Worker(chain(&error)))?
            .call
            .ns;
        let answer = match scoring.try_case(Gate::Slow, &mut candidate, case, setup)? {
            Ok((answer, _)) => answer,
            Err(end) => return Ok(Err(end)),
        };
        if number > 0 {
            ours = ours.min(answer.call.ns);
            theirs = theirs.min(theirs_now);
        }
    }
    Ok(Ok((ours, theirs)))
}

pub(crate) fn slow(scoring: &mut Scoring<'_>, champion: &Built, pool: &ScreenPool) -> GateEnd {
    if scoring.worker.device.is_some() {
        return slow_on_device(scoring, champion, pool);
    }
    let mut ratios = Vec::new();
    for _ in 0..2 {
        let (ours, theirs) = step!(side_by_side(scoring, champion, pool));
        let ratio = ours as f64 / theirs.max(1) as f64;
        ratios.push(ratio);
        if ratio <= LIMIT {
            return Ok(End::Pass(
                json!({ "time_over_champion": ratios, "candidate_ns": ours, "champion_ns": theirs }),
            ));
        }
    }
    Ok(End::Fail(
        code(Gate::Slow, "slower"),
        json!({ "time_over_champion": ratios, "limit": LIMIT }),
    ))
}

/// Checks that a built candidate answers its cases rightly: for baselines and champions, whose failure is ours.
pub(crate) fn check_arm(
    built: &Built,
    cases: &[Arc<Case>],
    oracle: &Oracle,
    worker: &WorkerOptions,
) -> Result<Result<Vec<u64>, (String, String)>, JudgeError> {
    let blame = |gate, error| match blamed(gate, error)? {
        End::Fail(code, evidence) => Ok((code, evidence.to_string())),
        End::Pass(_) | End::Skipped(_) => Err(JudgeError::Worker("a fault without a cause".to_owned())),
    };
    let mut runner = match Runner::start(built, worker) {
        Ok(runner) => runner,
        Err(error) => return blame(Gate::Smoke, error).map(Err),
    };
    let mut times = Vec::new();
    for case in cases {
        let answer = match runner.call(case, Setup::new(&case.spec.bound).judged_only()) {
            Ok(answer) => answer,
            Err(error) => return blame(Gate::Dev, error).map(Err),
        };
        times.push(answer.call.ns);
        let judgement = answer.judgement(case, &oracle.checkers())?;
        if judgement.failed.is_some()
            && let End::Fail(code, evidence) = super::context::wrong(Gate::Dev, case, &judgement)
        {
            return Ok(Err((code, evidence.to_string())));
        }
    }
    Ok(Ok(times))
}
