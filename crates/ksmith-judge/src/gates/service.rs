//! The last part of gate `depends`: a worker of long service.
//!
//! What a kernel learns from many equal calls (that some input never changes, that nobody looks any more) must not change
//! its answers, and what a call takes it must give back. It is shown one small case a thousand times and more, then one element of an input changes; the same with
//! each further input, for some hundreds of calls; then the contract's probes and rows of mixed kind come again, over earlier answers instead of poison.

use std::sync::Arc;

use ksmith_ledger::Gate;
use ksmith_task::{Bound, Tensor};
use serde_json::json;

use super::context::{End, Scoring, Step, failed};
use super::depends::changed;
use super::runner::{Answer, Runner, RunnerError, Setup};
use crate::cases::{Case, POISONS, Stream, dev_fills, draw_shape};
use crate::codes::code;

/// Storage of the case that is repeated, and draws of which one is taken.
const SMALL: u64 = 8 << 10;
const LARGEST_OF: usize = 24;
/// Dev shapes of at most this storage see the probes again.
const AGAIN: u64 = 1 << 20;
/// Equal calls before the first input changes, and before each other one: at least so many, and up to a quarter more.
const LONG: u64 = 1200;
const SHORT: u64 = 256;

/// Equal calls between two looks at the worker's memory, and bytes that half of them must keep to be noticed.
const STRETCH: u64 = 200;
const LEAST_KEPT: u64 = 4096;

/// Ages the worker and looks again; how many calls that took.
pub(crate) fn service(scoring: &mut Scoring<'_>) -> Step<u64> {
    let plan = scoring.plan();
    let mut stream = plan.decisions("service");
    let drawn = (0..LARGEST_OF).filter_map(|_| {
        draw_shape(
            scoring.instance,
            &mut stream,
            SMALL,
            f64::INFINITY,
            &Default::default(),
        )
    });
    // Where the least input is largest: a handful of samples must not be all of it.
    let least = |bound: &Arc<Bound>| bound.inputs().map(Tensor::len).min();
    let Some(bound) = drawn.max_by_key(|bound| (least(bound), bound.storage_bytes())) else {
        return Ok(Ok(0));
    };
    let spec = plan.case(&bound, dev_fills(&bound), "service", 0);
    let mut worker = match scoring.start(Gate::Depends)? {
        Ok(runner) => runner,
        Err(end) => return Ok(Err(end)),
    };
    let runner = &mut worker;
    let mut case = scoring.oracle.case(&spec)?;
    let answer = match runner.call(&case, Setup::new(&bound)) {
        Ok(answer) => answer,
        Err(error) => return failed(Gate::Depends, error),
    };
    let mut usual = match scoring.judge(Gate::Depends, &case, answer)? {
        Ok((answer, _)) => answer.outputs,
        Err(end) => return Ok(Err(end)),
    };
    let (mut calls, mut grown) = (1, Growth::default());
    for input in 0..bound.inputs().count() {
        let least = if input == 0 { LONG } else { SHORT };
        for call in 0..least + stream.below(least / 4) {
            calls += 1;
            if input == 0 && call % STRETCH == 0 {
                grown.note(runner.own_memory());
            }
            match again(runner, &case, input, &mut stream)? {
                // Equal bytes were verified once; other ones are verified anew.
                Ok(answer) if answer.outputs == usual && answer.late.is_none() && answer.gap.is_none() => {}
                Ok(answer) => {
                    if let Err(end) = scoring.judge(Gate::Depends, &case, answer)? {
                        return Ok(Err(end));
                    }
                }
                Err(end) => return Ok(Err(end)),
            }
        }
        if input == 0 && grown.steadily() {
            return Ok(Err(End::Fail(
                code(Gate::Depends, "memory-kept"),
                json!({ "calls": STRETCH, "bytes": grown.by_stretch }),
            )));
        }
        if let Some(next) = changed(scoring, &case, input, &mut stream)? {
            case = next;
            let answer = match again(runner, &case, input, &mut stream)? {
                Ok(answer) => answer,
                Err(end) => return Ok(Err(end)),
            };
            usual = match scoring.judge(Gate::Depends, &case, answer)? {
                Ok((answer, _)) => answer.outputs,
                Err(end) => return Ok(Err(end)),
            };
        }
    }
    let dev = scoring.dev.iter().map(|(_, case)| &case.spec.bound);
    let dev = dev
        .filter(|bound| bound.storage_bytes() <= AGAIN)
        .max_by_key(|bound| bound.storage_bytes());
    let shapes: Vec<Arc<Bound>> = dev.into_iter().chain([&bound]).cloned().collect();
    // The first case of each shape lies over poison, the others over the answers of those before, as in a program that keeps
    // its buffers.
    let mut specs = scoring.plan().late_probes(&shapes)?;
    specs.sort_by(|one, other| one.bound.axes.cmp(&other.bound.axes));
    let mut before: Option<Case> = None;
    for spec in specs {
        let case = scoring.oracle.case(&spec)?;
        calls += 1;
        let same = before.as_ref().is_some_and(|before| {
            before.spec.bound.axes == spec.bound.axes && before.inputs.scalars == case.inputs.scalars
        });
        let answer = if same {
            over(runner, &case)
        } else {
            runner.call(&case, Setup::new(&spec.bound))
        };
        match answer {
            Ok(answer) => {
                if let Err(end) = scoring.judge(Gate::Depends, &case, answer)? {
                    return Ok(Err(end));
                }
            }
            Err(error) => return failed(Gate::Depends, error),
        }
        before = Some(case);
    }
    Ok(Ok(calls))
}

/// The worker's memory from stretch to stretch of equal calls.
#[derive(Debug, Default)]
struct Growth {
    last: Option<u64>,
    /// Bytes by which each stretch made it grow; the first, in which a kernel may set up what it keeps, does not count.
    by_stretch: Vec<u64>,
}

impl Growth {
    fn note(&mut self, bytes: Option<u64>) {
        if let (Some(last), Some(bytes)) = (self.last, bytes) {
            self.by_stretch.push(bytes.saturating_sub(last));
        }
        self.last = bytes;
    }

    /// Whether every stretch but the first made it grow by a page in two calls or more.
    fn steadily(&self) -> bool {
        let later = self.by_stretch.get(1..).unwrap_or_default();
        later.len() >= 3 && later.iter().all(|bytes| *bytes >= STRETCH / 2 * LEAST_KEPT)
    }
}

/// Another case at the same addresses, over the answer of the one before.
fn over(runner: &mut Runner, case: &Case) -> Result<Answer, RunnerError> {
    let bound = &case.spec.bound;
    for (index, bytes) in case.storage.iter().enumerate() {
        runner.rewrite(bound, index, bytes)?;
    }
    let setup = Setup::new(bound).poison(runner.last_poison());
    match case.storage.first() {
        Some(first) => runner.again(bound, 0, first, None, setup),
        None => runner.call(case, setup),
    }
}

/// The same call at the same addresses, over a drawn poison.
fn again(runner: &mut Runner, case: &Case, input: usize, stream: &mut Stream) -> Step<Answer> {
    let bound = &case.spec.bound;
    if bound.tensors.iter().any(|tensor| tensor.inplace.is_some()) {
        // The call before has overwritten its input.
        for (index, bytes) in case.storage.iter().enumerate() {
            if let Err(error) = runner.rewrite(bound, index, bytes) {
                return failed(Gate::Depends, error);
            }
        }
    }
    let poison = POISONS[stream.below(2) as usize];
    let setup = Setup::new(bound).poison(poison);
    match runner.again(bound, input, &case.storage[input], Some(poison), setup) {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => failed(Gate::Depends, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(bytes: &[u64]) -> bool {
        let mut growth = Growth::default();
        bytes.iter().for_each(|bytes| growth.note(Some(*bytes)));
        growth.steadily()
    }

    #[test]
    fn steady_growth_is_told_from_what_a_kernel_sets_up() {
        let leak = STRETCH * 4096;
        assert!(grown(&[0, leak, 2 * leak, 3 * leak, 4 * leak, 5 * leak]));
        // All of it in the first stretch; in one later jump; too few looks; nothing at all.
        assert!(!grown(&[0, 9 * leak, 9 * leak, 9 * leak, 9 * leak, 9 * leak]));
        assert!(!grown(&[0, 0, 0, 9 * leak, 9 * leak, 9 * leak]));
        assert!(!grown(&[0, leak, 2 * leak, 3 * leak]));
        assert!(!grown(&[0; 7]));
    }
}
