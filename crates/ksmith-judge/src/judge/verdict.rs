//! Putting gates together into a verdict.

use std::time::Instant;

use ksmith_ledger::{Decision, Gate, GateOutcome, GateResult, Scope, Speedup, Verdict};
use ksmith_task::{Digest, chain};
use serde_json::{Value, json};

use crate::codes::code;
use crate::gates::{End, GateEnd};

/// What every verdict of one judge has in common.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) scope: Scope,
    pub(crate) tier: String,
    pub(crate) isolation: String,
    pub(crate) task: Digest,
    pub(crate) judge: Digest,
    pub(crate) device: Digest,
}

/// The gates of one scoring so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Protocol {
    pub(crate) gates: Vec<GateResult>,
}

/// Whether the next gate runs.
pub(crate) enum Next {
    Go,
    Stop(Decision, String, Gate),
}

impl Protocol {
    /// Runs one gate and notes how it ended.
    pub(crate) fn run(&mut self, gate: Gate, check: impl FnOnce() -> GateEnd) -> Next {
        let started = Instant::now();
        let end = check();
        self.note(gate, end, started)
    }

    pub(crate) fn note(&mut self, gate: Gate, end: GateEnd, started: Instant) -> Next {
        let (result, code, evidence, next) = match end {
            Ok(End::Pass(evidence)) => (GateOutcome::Pass, None, evidence, Next::Go),
            Ok(End::Skipped(why)) => (
                GateOutcome::Skipped,
                Some(format!("{gate}/skipped")),
                json!({ "why": why }),
                Next::Go,
            ),
            Ok(End::Fail(code, evidence)) => {
                let next = Next::Stop(Decision::Reject, code.clone(), gate);
                (GateOutcome::Fail, Some(code), evidence, next)
            }
            Err(error) => {
                let code = code(gate, "could-not-run");
                let next = Next::Stop(Decision::Error, code.clone(), gate);
                (
                    GateOutcome::Error,
                    Some(code),
                    json!({ "cause": chain(&error) }),
                    next,
                )
            }
        };
        self.add(gate, result, code, evidence, started);
        next
    }

    pub(crate) fn add(
        &mut self,
        name: Gate,
        result: GateOutcome,
        code: Option<String>,
        evidence: Value,
        started: Instant,
    ) {
        let ms = started.elapsed().as_secs_f64() * 1e3;
        self.gates.push(GateResult {
            name,
            result,
            code,
            ms,
            evidence,
        });
    }
}

/// The three gains of a verdict.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gains {
    pub(crate) over_champion: Option<Speedup>,
    pub(crate) over_baseline: Option<Speedup>,
    pub(crate) over_flag_control: Option<Speedup>,
}

impl Binding {
    pub(crate) fn verdict(
        &self,
        candidate: Digest,
        protocol: Protocol,
        decision: (Decision, String, Option<Gate>),
        gains: Gains,
    ) -> Verdict {
        Verdict {
            verdict: decision.0,
            code: decision.1,
            gate: decision.2,
            tier: self.tier.clone(),
            isolation: self.isolation.clone(),
            scope: self.scope,
            scope_note: self.scope.sentence().to_owned(),
            speedup: gains.over_champion,
            over_baseline: gains.over_baseline,
            over_flag_control: gains.over_flag_control,
            gates: protocol.gates,
            task: self.task,
            candidate,
            judge: self.judge,
            device: self.device,
        }
    }
}
