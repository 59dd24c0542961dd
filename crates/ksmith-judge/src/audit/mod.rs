//! The task audit: is this contract able to tell right from wrong, and what does one scoring cost?
//!
//! Runs before a lock. Trivial candidates (zeros, a constant, a copy of an input, the mean) must fail on the dev cases;
//! outputs must depend on every input; the tolerance must tell the named precision from one lower; the baseline must
//! pass and score 1.00 against itself; and one scoring must fit its limit.

mod precision;
mod report;
mod trivial;

use std::time::Instant;

use ksmith_task::{Backend, Instance};

use crate::cases::{Plan, dev_fills, draw_shape, tiny};
use crate::judge::{Judge, JudgeError, JudgeOptions};

pub use report::{Audit, Finding, Severity};

/// Audits one instance: opens a judge for it (so the baseline must compile and pass) and examines the contract.
///
/// # Errors
/// When the reference, the baseline or the boxes fail: then there is nothing to audit with.
pub fn audit(instance: &Instance, options: JudgeOptions) -> Result<Audit, JudgeError> {
    let backend = options.backend;
    let mut findings = Vec::new();
    let mut judge = match Judge::open(instance, options) {
        Ok(judge) => judge,
        Err(JudgeError::BaselineFails { code, evidence }) => {
            let text = format!("the baseline does not pass its own task: {code} ({evidence})");
            return Ok(Audit::refused(instance, Finding::error("baseline", text)));
        }
        Err(error) => return Err(error),
    };
    let plan = Plan::dev(instance).on(backend);
    let mut stream = plan.decisions("audit");
    let shapes = tiny(instance, &mut stream, 4);
    let mut cases = Vec::new();
    for (number, bound) in shapes.iter().enumerate() {
        cases.push(judge.oracle_case(&plan.case(bound, dev_fills(bound), "audit", number as u64))?);
    }
    if let Some(bound) = draw_shape(
        instance,
        &mut stream,
        256 << 10,
        f64::INFINITY,
        &Default::default(),
    ) {
        cases.push(judge.oracle_case(&plan.case(&bound, dev_fills(&bound), "audit", 99))?);
    }
    findings.extend(trivial::trivial_candidates(&cases, &judge)?);
    findings.extend(trivial::independent_inputs(&cases, &mut judge)?);
    findings.extend(precision::separation(&cases, &mut judge)?);

    let (cost, more) = predict(instance, backend, &mut judge)?;
    findings.extend(more);
    Ok(Audit::new(instance, findings, cost))
}

/// Cases, bytes and seconds of one scoring.
fn predict(
    instance: &Instance,
    backend: Backend,
    judge: &mut Judge,
) -> Result<(report::Cost, Vec<Finding>), JudgeError> {
    let plan = Plan::dev(instance).on(backend);
    let hidden = plan.hidden_cases(1.0)?;
    let mut probes = plan.probes()?;
    probes.extend(plan.pressures(4 << 20)?.into_iter().map(|pressed| pressed.spec));
    let bytes: u64 = hidden
        .iter()
        .chain(&probes)
        .map(|spec| spec.bound.storage_bytes())
        .sum();
    let mut findings = Vec::new();
    // One dev case tells how fast inputs, reference and baseline are per byte.
    let mut sample: Option<(f64, u64)> = None;
    for (_, spec) in plan.workloads(7)? {
        let started = Instant::now();
        judge.oracle_case(&spec)?;
        let seconds = started.elapsed().as_secs_f64();
        let size = spec.bound.storage_bytes();
        if sample.is_none_or(|(_, largest)| size > largest) {
            sample = Some((seconds, size));
        }
    }
    let per_byte = sample.map_or(0.0, |(seconds, size)| seconds / size.max(1) as f64);
    // Each case is drawn once; repeat, bounds, poison and depends show a few small ones again.
    let drawing = per_byte * bytes as f64 * 1.5;
    let bench: f64 = instance
        .workloads(backend)
        .filter_map(|workload| instance.bind(&workload.axes).ok())
        .map(|bound| bound.storage_bytes() as f64 * per_byte * 20.0)
        .sum();
    let seconds = drawing + 2.0;
    let limit = instance.task().contract().hidden.scoring_limit_s;
    if seconds > limit {
        findings.push(Finding::error(
            "scoring-limit",
            format!(
                "one scoring would take about {seconds:.1} s before any timing, more than scoring_limit = {limit} s: lower hidden.max_bytes or hidden.cases, or raise the limit"
            ),
        ));
    }
    let cost = report::Cost {
        hidden_cases: hidden.len(),
        probe_cases: probes.len(),
        bytes,
        seconds,
        bench_pool_seconds: bench,
        limit_seconds: limit,
    };
    Ok((cost, findings))
}
