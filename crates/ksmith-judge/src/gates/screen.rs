//! Gate `slow`: hopelessly slow candidates leave after a few calls beside the champion.
//!
//! Minimum of 16 calls at a shape where the champion takes 20-200 us; more than 1.25 times slower in two worker pairs
//! rejects (figures of the rule in `docs/statistics.md`). Cases are cached over a run, because screening only rejects.

use std::sync::Arc;
use std::time::Duration;

use ksmith_ledger::Gate;
use serde_json::json;

use super::context::{Built, End, GateEnd, Scoring, chain, step};
use super::judgement::judge;
use super::measure::deadline;
use super::runner::{Runner, Setup, WorkerOptions};
use crate::cases::{Case, Plan, Secret, bind, dev_fills, draw_shape};
use crate::codes::code;
use crate::judge::JudgeError;
use crate::reference::Oracle;

/// Timed calls per worker, after one that warms up.
pub(crate) const CALLS: usize = 16;
/// Slower than this many times the champion is hopeless.
const LIMIT: f64 = 1.25;

/// The cached cases of the screening bench, at a shape that suits the champion.
#[derive(Debug, Clone)]
pub(crate) struct ScreenPool {
    pub(crate) cases: Arc<Vec<Case>>,
    pub(crate) champion_ns: u64,
}

/// Finds a shape at which the champion takes 20-200 us, and draws its cases.
pub(crate) fn screen_pool(
    instance: &ksmith_task::Instance,
    oracle: &mut Oracle,
    secret: &Secret,
    champion: &Built,
    worker: &WorkerOptions,
) -> Result<ScreenPool, JudgeError> {
    let plan = Plan::hidden(instance, secret);
    let mut stream = plan.decisions("screen shapes");
    let mut shapes = Vec::new();
    for workload in instance.workloads(ksmith_task::Backend::Cpu) {
        shapes.push(bind(instance, &workload.name, &workload.axes)?);
    }
    for kib in [16u64, 64, 256, 1024] {
        shapes.extend(draw_shape(
            instance,
            &mut stream,
            kib << 10,
            f64::INFINITY,
            &Default::default(),
        ));
    }
    shapes.sort_by_key(|bound| bound.storage_bytes());
    let mut best: Option<(f64, u64, Arc<ksmith_task::Bound>)> = None;
    for (number, bound) in shapes.into_iter().enumerate() {
        let mut runner = Runner::start(&champion.library.path, &champion.entry, worker)
            .map_err(|error| JudgeError::Worker(chain(&error)))?;
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
        .map(|number| oracle.case(&plan.case(&bound, dev_fills(&bound), "screen bench", number)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ScreenPool {
        cases: Arc::new(cases),
        champion_ns,
    })
}

/// The least times of candidate and champion, side by side in fresh workers.
fn side_by_side(
    scoring: &Scoring<'_>,
    champion: &Built,
    pool: &ScreenPool,
) -> super::context::Step<(u64, u64)> {
    let mut candidate = match scoring.start(Gate::Slow)? {
        Ok(runner) => runner,
        Err(end) => return Ok(Err(end)),
    };
    let mut other = Runner::start(&champion.library.path, &champion.entry, scoring.worker)
        .map_err(|error| JudgeError::Worker(chain(&error)))?;
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
    let mut runner = match Runner::start(&built.library.path, &built.entry, worker) {
        Ok(runner) => runner,
        Err(ksmith_worker::cpu::WorkerError::Fault(fault)) => {
            return Ok(Err(("smoke/load".to_owned(), fault.to_string())));
        }
        Err(ksmith_worker::cpu::WorkerError::Box(error)) => return Err(JudgeError::Box(error)),
        Err(error) => return Err(JudgeError::Worker(chain(&error))),
    };
    let mut times = Vec::new();
    for case in cases {
        let answer = match runner.call(case, Setup::new(&case.spec.bound)) {
            Ok(answer) => answer,
            Err(ksmith_worker::cpu::WorkerError::Fault(fault)) => {
                return Ok(Err(("dev/crash".to_owned(), fault.to_string())));
            }
            Err(error) => return Err(JudgeError::Worker(chain(&error))),
        };
        times.push(answer.call.ns);
        let judgement = judge(case, &answer.outputs, &oracle.checkers())?;
        if judgement.failed.is_some()
            && let End::Fail(code, evidence) = super::context::wrong(Gate::Dev, case, &judgement)
        {
            return Ok(Err((code, evidence.to_string())));
        }
    }
    Ok(Ok(times))
}
