//! The two passes: screen and score.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use ksmith_ledger::{Decision, Gate, GateOutcome, Verdict};
use ksmith_task::{Backend, Candidate, chain};
use serde_json::json;

use super::timing;
use super::verdict::{Gains, Next, Protocol};
use super::{Effort, Judge, JudgeError};
use crate::bench::{self, BaselineArm, Comparison, Finding, FlagControlArm, OrderSeed, Role};
use crate::cases::Secret;
use crate::gates::{self, BenchHost, GateEnd, Scoring};
use crate::statistics::DataDependence;

/// Workers kept ready on a device while gates run.
const SPARES: usize = 3;

type Check = for<'s, 'j> fn(&'s mut Scoring<'j>) -> GateEnd;

/// The correctness gates of a full pass, in order.
const GATES: [(Gate, Check); 15] = [
    (Gate::Policy, gates::policy),
    (Gate::Compile, gates::compile),
    (Gate::Static, gates::library),
    (Gate::Smoke, gates::smoke),
    (Gate::Dev, gates::dev),
    (Gate::Hidden, gates::hidden),
    (Gate::Probes, gates::probes),
    (Gate::Traces, gates::traces),
    (Gate::State, gates::state),
    (Gate::Repeat, gates::repeat),
    (Gate::Bounds, gates::bounds),
    (Gate::Poison, gates::poison),
    (Gate::Depends, gates::depends),
    (Gate::Precision, gates::precision),
    (Gate::Sanitize, gates::sanitize),
];

/// Those of a screening, which then benches.
const SCREEN: [(Gate, Check); 4] = [
    (Gate::Policy, gates::policy),
    (Gate::Compile, gates::compile),
    (Gate::Static, gates::library),
    (Gate::Smoke, gates::smoke),
];

impl Judge {
    /// The quick pass: policy, compile, static, smoke, one dev case, a quick bench. It only rejects: a candidate that
    /// stays in gets `revise` with the code `screen/passed`.
    pub fn screen(&mut self, candidate: &Candidate) -> Verdict {
        self.halted = false;
        let halt = self.halt.clone();
        let mut protocol = Protocol::default();
        let pool = match self.screening() {
            Ok(pool) => pool,
            Err(error) => return self.cannot(candidate, protocol, Gate::Slow, error),
        };
        let champion = self.champion.clone();
        let without = self.options.without.clone();
        let mut scoring = self.scoring(candidate, Secret::dev());
        // The one dev case is the smallest: a wrong kernel is wrong there too, and it costs little.
        scoring
            .dev
            .sort_by_key(|(_, case)| case.spec.bound.storage_bytes());
        scoring.dev.truncate(1);
        scoring.keep_warm = scoring.worker.device.is_some();
        let mut stopped = None;
        let dev: [(Gate, Check); 1] = [(Gate::Dev, gates::dev)];
        for (gate, check) in SCREEN.iter().chain(&dev) {
            if without.contains(gate) && *gate != Gate::Compile {
                continue;
            }
            if halt.is_wanted() {
                drop(scoring);
                self.halted = true;
                return self.cannot(candidate, protocol, *gate, JudgeError::Halted);
            }
            if let Next::Stop(decision, code, gate) = protocol.run(*gate, || check(&mut scoring)) {
                stopped = Some((decision, code, Some(gate)));
                break;
            }
        }
        if stopped.is_none()
            && !without.contains(&Gate::Slow)
            && let Next::Stop(decision, code, gate) =
                protocol.run(Gate::Slow, || gates::slow(&mut scoring, &champion, &pool))
        {
            stopped = Some((decision, code, Some(gate)));
        }
        let end = stopped.unwrap_or((Decision::Revise, "screen/passed".to_owned(), None));
        self.binding
            .verdict(candidate.digest(), protocol, end, Gains::default())
    }

    /// The full pass: every gate, decision, confirmation.
    pub fn score(&mut self, candidate: &Candidate) -> Verdict {
        self.report = None;
        self.halted = false;
        let halt = self.halt.clone();
        let mut protocol = Protocol::default();
        let secret = match self.book.draw("score") {
            Ok((secret, _)) => secret,
            Err(error) => {
                let error = JudgeError::io("could not draw the scoring's secret")(error);
                return self.cannot(candidate, protocol, Gate::Hidden, error);
            }
        };
        let without = self.options.without.clone();
        if let Some(device) = &self.worker.device {
            device.keep(SPARES);
        }
        let turns = self.options.turns.clone();
        let beside = turns
            .as_ref()
            .map(|turns| turns.read().unwrap_or_else(PoisonError::into_inner));
        let mut scoring = self.scoring(candidate, secret.clone());
        for (gate, check) in GATES {
            if without.contains(&gate) && gate != Gate::Compile {
                continue;
            }
            if halt.is_wanted() {
                drop(scoring);
                self.halted = true;
                return self.cannot(candidate, protocol, gate, JudgeError::Halted);
            }
            if let Next::Stop(decision, code, gate) = protocol.run(gate, || check(&mut scoring)) {
                drop(scoring);
                let end = (decision, code, Some(gate));
                return self
                    .binding
                    .verdict(candidate.digest(), protocol, end, Gains::default());
            }
        }
        let Some(built) = scoring.built.take() else {
            drop(scoring);
            let error = JudgeError::Unsupported("the candidate was not compiled".to_owned());
            return self.cannot(candidate, protocol, Gate::Compile, error);
        };
        drop(scoring);
        if self.options.effort == Effort::Correctness {
            let end = (
                Decision::Revise,
                crate::codes::code(Gate::Gain, "not-measured"),
                Some(Gate::Gain),
            );
            return self
                .binding
                .verdict(candidate.digest(), protocol, end, Gains::default());
        }
        drop(beside);
        let _alone = turns
            .as_ref()
            .map(|turns| turns.write().unwrap_or_else(PoisonError::into_inner));
        let verdict = self.measure(candidate, &built, &secret, protocol.clone());
        let Some(Finding::Fault {
            role: Role::FlagControl,
            ..
        }) = self.report.as_ref().map(|report| &report.finding)
        else {
            return verdict;
        };
        // The flag control need not have passed the gates. One that fails while it is timed is no yardstick.
        self.flag_control = None;
        self.measure(candidate, &built, &secret, protocol)
    }

    fn measure(
        &mut self,
        candidate: &Candidate,
        built: &gates::Built,
        secret: &Secret,
        mut protocol: Protocol,
    ) -> Verdict {
        let started = Instant::now();
        let contract = self.instance.task().contract().clone();
        let corpus = self.options.effort == Effort::Corpus;
        let mut settings = if corpus {
            super::corpus::SETTINGS
        } else {
            self.options.settings
        };
        settings.floor = settings.floor.min(contract.performance.min_gain);
        settings.confirmation = u32::try_from(self.book.count("confirm")).unwrap_or(u32::MAX - 1) + 1;
        let times = self.champion_ns.clone();
        let backend = self.options.backend;
        // On a device the neighbour is one for the whole run, so that the decision's pool serves every scoring.
        let shapes = match backend {
            Backend::Cpu => Ok(secret.clone()),
            Backend::Cuda => self.book.once("bench shapes").map(|(secret, _)| secret),
        };
        let shapes = match shapes {
            Ok(shapes) => shapes,
            Err(error) => {
                let error = JudgeError::io("could not draw the secret of the timed shapes")(error);
                return self.cannot(candidate, protocol, Gate::Bench, error);
            }
        };
        let mut timed = match gates::timed_workloads(&self.instance, backend, &shapes, &|name: &str| {
            times.get(name).copied().unwrap_or(1_000_000)
        }) {
            Ok(timed) => timed,
            Err(error) => return self.cannot(candidate, protocol, Gate::Bench, error),
        };
        if corpus {
            super::corpus::smallest(&mut timed);
        }
        // The protocol's numbers are least numbers of timed calls per arm; a pair holds one lane of each.
        let protocol_calls = contract.performance.protocol.repeats * contract.performance.protocol.rounds;
        let slowest = timed.iter().map(|timed| timed.champion_ns).max().unwrap_or(0);
        settings.min_pairs = settings
            .min_pairs
            .max(protocol_calls.div_ceil(settings.calls(slowest)));
        let same = |one: &gates::Built, other: &gates::Built| one.digest() == other.digest();
        let baseline = if same(&self.champion, &self.baseline) {
            BaselineArm::IsChampion
        } else {
            BaselineArm::Own
        };
        let flag_control = match &self.flag_control {
            None => FlagControlArm::Absent,
            Some(control) if same(control, &self.champion) => FlagControlArm::IsChampion,
            Some(control) if same(control, &self.baseline) => FlagControlArm::IsBaseline,
            Some(control) if same(control, built) => FlagControlArm::Absent,
            Some(_) => FlagControlArm::Own,
        };
        let plan = gates::bench_plan(&timed, backend, settings, baseline, flag_control);
        let seed = OrderSeed(*secret.derive("bench order", 0).bytes());
        let mut host = BenchHost {
            instance: &self.instance,
            oracle: &mut self.oracle,
            book: &mut self.book,
            worker: &self.worker,
            plan: plan.clone(),
            timed: timed.clone(),
            candidate: built,
            champion: &self.champion,
            baseline: &self.baseline,
            flag_control: self.flag_control.as_ref(),
            started,
            pool: gates::Pool::default(),
            late: Arc::default(),
            late_secret: secret.derive("late probes", 0),
            halt: self.halt.clone(),
            backend,
            kept: &mut self.kept_pool,
            lock: None,
        };
        let report = bench::measure(&mut host, &plan, seed);
        drop(host);
        self.halted = matches!(report.finding, Finding::Broken { .. }) && self.halt.is_wanted();
        let gains = Gains {
            over_champion: report.last().over_champion.as_ref().map(Comparison::speedup),
            over_baseline: timing::over_baseline(report.last()).map(Comparison::speedup),
            over_flag_control: report.last().over_flag_control.as_ref().map(Comparison::speedup),
        };
        if corpus {
            let end = self.after_one_set(built, &report, &timed, &mut protocol, started);
            return self.binding.verdict(candidate.digest(), protocol, end, gains);
        }
        let mut end = None;
        let mut last = started;
        for said in timing::bench(&report) {
            end = end.or(said.note(&mut protocol, last));
            last = Instant::now();
        }
        if end.is_none() {
            end = self.after_bench(built, &report, &timed, &contract, &mut protocol);
        }
        self.report = Some(report);
        let mut end = end.unwrap_or((Decision::Accept, "accept/confirmed".to_owned(), None));
        if end.0 == Decision::Accept && !self.options.without.is_empty() {
            end = (
                Decision::Revise,
                crate::codes::code(Gate::Gain, "not-measured"),
                Some(Gate::Gain),
            );
        }
        self.binding.verdict(candidate.digest(), protocol, end, gains)
    }

    fn after_bench(
        &mut self,
        built: &gates::Built,
        report: &bench::Report,
        timed: &[gates::Timed],
        contract: &ksmith_task::Contract,
        protocol: &mut Protocol,
    ) -> Option<(Decision, String, Option<Gate>)> {
        if let Some(end) = self.physics(built, report, timed, protocol) {
            return Some(end);
        }
        let without = self.options.without.clone();
        let dependence = if contract.performance.data_dependent {
            DataDependence::Allowed
        } else {
            DataDependence::Forbidden
        };
        for said in [
            timing::distributions(report, dependence),
            timing::gain(report),
            timing::regression(report, contract.performance.max_regression),
        ] {
            if without.contains(&said.gate) {
                continue;
            }
            if let Some(end) = said.note(protocol, Instant::now()) {
                return Some(end);
            }
        }
        None
    }

    /// Gates `floor` and `clocks`.
    pub(super) fn physics(
        &mut self,
        built: &gates::Built,
        report: &bench::Report,
        timed: &[gates::Timed],
        protocol: &mut Protocol,
    ) -> Option<(Decision, String, Option<Gate>)> {
        let without = self.options.without.clone();
        if !without.contains(&Gate::Floor) {
            let floor = || match &self.worker.device {
                Some(device) => gates::device_floor(device, timed, report),
                None => gates::floor(timed, report, &self.build, &self.scratch, &self.worker),
            };
            if let Next::Stop(decision, code, gate) = protocol.run(Gate::Floor, floor) {
                return Some((decision, code, Some(gate)));
            }
        }
        if !without.contains(&Gate::Clocks) {
            let secret = match self.book.draw("slope") {
                Ok((secret, _)) => secret,
                Err(error) => {
                    let end = Err(JudgeError::io("could not draw a secret")(error));
                    protocol.note(Gate::Clocks, end, Instant::now());
                    return Some((
                        Decision::Error,
                        crate::codes::code(Gate::Clocks, "could-not-run"),
                        Some(Gate::Clocks),
                    ));
                }
            };
            let oracle = &mut self.oracle;
            let lanes = self.worker.device.as_deref().map(|device| gates::Lanes {
                instance: &self.instance,
                secret: secret.clone(),
                timed,
                report,
                candidate: built,
                champion: &self.champion,
                worker: &self.worker,
                device,
            });
            let clocks = || match &lanes {
                Some(lanes) => gates::lanes(lanes, oracle),
                None => gates::clocks(
                    &self.instance,
                    oracle,
                    &secret,
                    timed,
                    report,
                    built,
                    &self.worker,
                ),
            };
            if let Next::Stop(decision, code, gate) = protocol.run(Gate::Clocks, clocks) {
                return Some((decision, code, Some(gate)));
            }
        }
        None
    }

    fn scoring<'j>(&'j mut self, candidate: &'j Candidate, secret: Secret) -> Scoring<'j> {
        Scoring {
            instance: &self.instance,
            backend: self.options.backend,
            oracle: &mut self.oracle,
            worker: &self.untimed,
            build: &self.build,
            scratch: self.scratch.clone(),
            candidate,
            built: None,
            baseline: &self.baseline,
            secret,
            tiny: self.tiny.clone(),
            dev: self.dev.clone(),
            hidden: Vec::new(),
            small: self.options.effort != Effort::Full,
            ratios: Vec::new(),
            warm: None,
            keep_warm: false,
        }
    }

    /// The verdict when we could not judge.
    fn cannot(
        &self,
        candidate: &Candidate,
        mut protocol: Protocol,
        gate: Gate,
        error: JudgeError,
    ) -> Verdict {
        let code = crate::codes::code(gate, "could-not-run");
        let evidence = json!({ "cause": chain(&error) });
        protocol.add(
            gate,
            GateOutcome::Error,
            Some(code.clone()),
            evidence,
            Instant::now(),
        );
        self.binding.verdict(
            candidate.digest(),
            protocol,
            (Decision::Error, code, Some(gate)),
            Gains::default(),
        )
    }
}
