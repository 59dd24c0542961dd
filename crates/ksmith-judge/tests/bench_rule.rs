//! The acceptance rule on modelled machines: rates, early stops, cheats that time themselves, faults, raw samples.
//!
//! Small counts; `cargo run --release -p ksmith-judge --example rates` takes bigger ones.

use std::collections::BTreeSet;
use std::time::Duration;

use ksmith_judge::bench::simulation::{Machine, Model, ModelHost, Source, plain_plan, simulate};
use ksmith_judge::bench::{
    Arm, BaselineArm, CaseId, Distribution, Fault, Finding, FlagControlArm, Host, Load, OrderSeed, Plan,
    Report, Role, Settings, Stage, TimedCall, Workload, measure,
};
use ksmith_judge::statistics::{
    DataDependence, RegressionState, distribution_falls_short, distribution_floor, regressions,
};
use ksmith_ledger::Decision;

fn plan() -> Plan {
    plain_plan(Settings::default())
}

fn judge(machine: Machine, model: Model, seed: u64) -> Report {
    measure(
        &mut ModelHost::new(machine, model, seed),
        &plan(),
        OrderSeed([seed as u8; 32]),
    )
}

#[test]
fn equal_kernels_are_never_accepted_on_any_machine() {
    for machine in [
        Machine::QUIET,
        Machine::BIMODAL,
        Machine::LOADED,
        Machine::CROWDED,
    ] {
        for call_ns in [20e3, 200e3] {
            let tally = simulate(
                Source::Model(machine, Model::honest(call_ns, 0.0)),
                &plan(),
                40,
                3,
            );
            assert_eq!((tally.judged, tally.accepted), (40, 0), "{machine:?} {call_ns}");
        }
    }
}

#[test]
fn kernels_that_save_three_percent_are_accepted_in_95_of_100_cases() {
    for machine in [Machine::QUIET, Machine::BIMODAL] {
        for call_ns in [20e3, 100e3, 500e3] {
            let tally = simulate(
                Source::Model(machine, Model::honest(call_ns, 0.03)),
                &plan(),
                40,
                4,
            );
            assert!(tally.accepted >= 38, "{machine:?} {call_ns}: {tally:?}");
            assert!(tally.seconds / 40.0 < 4.0, "{tally:?}");
        }
    }
}

#[test]
fn a_gain_at_the_floor_is_confirmed_at_most_as_often_as_the_error_allows() {
    let model = Model::honest(100e3, 1.0 - 1.0 / 1.01);
    let tally = simulate(Source::Model(Machine::BIMODAL, model), &plan(), 200, 5);
    // Both stages at 1 %; one in 200 would already be a hundred times their product.
    assert!(tally.accepted == 0 && tally.decided <= 6, "{tally:?}");
}

#[test]
fn early_stops_never_accept() {
    for seed in 0..60 {
        let saved = [-0.1, -0.02, 0.0, 0.02, 0.3][seed as usize % 5];
        let report = judge(Machine::BIMODAL, Model::honest(50e3, saved), seed);
        let last = report.decision.looks.last().unwrap();
        if last.pairs < report.decision.planned_pairs {
            assert_eq!(report.finding, Finding::BelowFloor, "seed {seed}");
            assert!(report.confirmation.is_none());
        }
        if report.finding == Finding::Confirmed {
            assert!(last.gain.lower > 0.01_f64.ln_1p());
            assert_eq!(report.confirmation.as_ref().unwrap().looks.len(), 1);
        }
    }
}

#[test]
fn clearly_slower_kernels_leave_at_the_first_look() {
    let report = judge(Machine::QUIET, Model::honest(50e3, -0.1), 1);
    assert_eq!(
        (report.finding.clone(), report.decision.looks.len()),
        (Finding::BelowFloor, 1)
    );
    assert_eq!(
        report.finding.verdict(-0.1),
        (Decision::Reject, "gain/below-floor".to_owned())
    );
}

#[test]
fn a_kernel_that_is_fast_only_now_and_then_is_contradicted() {
    // Fast in half of its calls, so that every lower quartile is; its means lose.
    let now_and_then = Model {
        fast_share: 0.5,
        otherwise: 1.3,
        ..Model::honest(50e3, 0.1)
    };
    for seed in 0..10 {
        let report = judge(Machine::QUIET, now_and_then, seed);
        assert!(
            matches!(report.finding, Finding::Contradiction { .. }),
            "{:?}",
            report.finding
        );
    }
}

#[test]
fn a_kernel_that_gives_up_the_cpu_in_its_slow_calls_is_contradicted() {
    let yields = Model {
        fast_share: 0.7,
        otherwise: 1.3,
        yields: 1.0,
        ..Model::honest(50e3, 0.1)
    };
    for seed in 0..10 {
        let report = judge(Machine::QUIET, yields, seed);
        assert!(
            matches!(report.finding, Finding::Contradiction { .. }),
            "{:?}",
            report.finding
        );
    }
}

#[test]
fn preempted_calls_do_not_count() {
    let report = judge(Machine::LOADED, Model::honest(50e3, 0.0), 9);
    let lanes = report.decision.record.sets.iter().flat_map(|set| &set.lanes);
    let lane = lanes
        .into_iter()
        .find(|lane| lane.preempted != 0)
        .expect("a loaded machine preempts");
    let marked = lane.preempted.count_ones() as usize;
    assert_eq!(lane.unpreempted().count() + marked, lane.ns.len());
    assert!(report.decision.unpreempted < 1.0);
}

#[test]
fn a_crowded_machine_gives_no_verdict() {
    let report = judge(Machine::CROWDED, Model::honest(500e3, 0.03), 2);
    assert!(
        matches!(report.finding, Finding::MachineBusy { .. }),
        "{:?}",
        report.finding
    );
    assert_eq!(
        report.finding.verdict(0.1),
        (Decision::Ambiguous, "bench/machine-busy".to_owned())
    );
}

#[test]
fn a_control_off_zero_is_an_error_where_the_gain_could_hang_on_it() {
    let unsound = Model {
        copy_factor: 1.02,
        ..Model::honest(50e3, 0.03)
    };
    let report = judge(Machine::QUIET, unsound, 2);
    assert!(
        matches!(report.finding, Finding::Noisy { .. }),
        "{:?}",
        report.finding
    );
    assert_eq!(
        report.finding.verdict(0.1),
        (Decision::Error, "bench/noisy".to_owned())
    );
}

#[test]
fn a_gain_far_beyond_an_unsound_control_stands_with_wider_bounds() {
    let unsound = |saved| Model {
        copy_factor: 1.02,
        ..Model::honest(50e3, saved)
    };
    // Three times as fast, where equal kernels differ by 2 %.
    let report = judge(Machine::QUIET, unsound(1.0 - 1.0 / 3.0), 2);
    assert_eq!(report.finding, Finding::Confirmed);
    let all = report.last().over_champion.as_ref().unwrap().all;
    let looked = report.last().looks.last().unwrap().gain;
    assert!(
        all.lower < looked.lower - 0.019 && all.upper > looked.upper + 0.019,
        "{all:?} {looked:?}"
    );
    assert!(all.contains(3.0_f64.ln()));
    // A sixth more is not ten times 2 %.
    let report = judge(Machine::QUIET, unsound(0.15), 2);
    assert!(
        matches!(report.finding, Finding::Noisy { .. }),
        "{:?}",
        report.finding
    );
}

#[test]
fn faults_are_blamed_on_the_arm_that_made_them_and_keep_the_record() {
    let wrong = Fault::Arm {
        code: "post-bench/wrong-output".to_owned(),
        evidence: serde_json::json!({ "class": "value" }),
    };
    let run = |role| {
        let mut host =
            ModelHost::new(Machine::QUIET, Model::honest(50e3, 0.03), 1).failing(role, wrong.clone());
        measure(&mut host, &plan(), OrderSeed([1; 32]))
    };
    let own = run(Role::Candidate);
    assert_eq!(
        own.finding.verdict(0.0),
        (Decision::Reject, "post-bench/wrong-output".to_owned())
    );
    assert_eq!(own.decision.record.sets.len(), 1);
    let other = run(Role::Copy);
    assert_eq!(
        other.finding.verdict(0.0),
        (Decision::Error, "bench/other-arm-failed".to_owned())
    );
    let mut broken = ModelHost::new(Machine::QUIET, Model::honest(50e3, 0.03), 1)
        .failing(Role::Candidate, Fault::Judge("no memory".to_owned()));
    let broken = measure(&mut broken, &plan(), OrderSeed([1; 32]));
    assert_eq!(
        broken.finding,
        Finding::Broken {
            what: "no memory".to_owned()
        }
    );
}

#[test]
fn a_report_reads_back_from_its_json() {
    let report = judge(Machine::QUIET, Model::honest(100e3, 0.05), 3);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    let few = Plan {
        settings: Settings {
            stage_seconds: 0.01,
            ..Settings::default()
        },
        ..plan()
    };
    let cut = measure(
        &mut ModelHost::new(Machine::QUIET, Model::honest(100e3, 0.05), 3),
        &few,
        OrderSeed([3; 32]),
    );
    let text = serde_json::to_string(&cut).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), cut);
    assert_eq!(cut.decision.looks.last().unwrap().gain.lower, f64::NEG_INFINITY);
}

/// Checks the protocol while it plays along: fresh cases, one arm awake, the same cases for all arms.
#[derive(Default)]
struct Strict {
    now_ns: u64,
    awake: std::rc::Rc<std::cell::RefCell<Option<Role>>>,
}

struct StrictArm {
    role: Role,
    seen: BTreeSet<CaseId>,
    awake: std::rc::Rc<std::cell::RefCell<Option<Role>>>,
}

impl Arm for StrictArm {
    fn call(&mut self, case: CaseId) -> Result<TimedCall, Fault> {
        assert_eq!(
            *self.awake.borrow(),
            Some(self.role),
            "only the woken arm is called"
        );
        assert!(self.seen.insert(case), "{case:?} came twice to one worker");
        let factor = if self.role == Role::Candidate && case.distribution == 0 {
            8
        } else {
            10
        };
        let wobble = (u64::from(case.index) * 7 + self.role as u64 * 3) % 11 * 20;
        let ns = 10_000 * factor * (1 + u64::from(case.workload)) + wobble;
        Ok(TimedCall {
            ns,
            judge_preempted: false,
            worker_preempted: false,
        })
    }

    fn wake(&mut self) -> Result<(), Fault> {
        assert_eq!(
            self.awake.replace(Some(self.role)),
            None,
            "everything else is frozen"
        );
        Ok(())
    }

    fn park(&mut self) -> Result<(), Fault> {
        self.awake.replace(None);
        Ok(())
    }

    fn cpu_time(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(4))
    }
}

impl Host for Strict {
    type Arm = StrictArm;

    fn begin(&mut self, _stage: Stage) -> Result<(), Fault> {
        Ok(())
    }

    fn start(&mut self, role: Role, _set: u32) -> Result<StrictArm, Fault> {
        Ok(StrictArm {
            role,
            seen: BTreeSet::new(),
            awake: self.awake.clone(),
        })
    }

    fn quiet(&mut self, _limit: Duration) -> Load {
        Load {
            other_cpus: Some(0.0),
            waited_s: 0.0,
            quiet: true,
        }
    }

    fn now(&mut self) -> Duration {
        self.now_ns += 1000;
        Duration::from_nanos(self.now_ns)
    }
}

fn two_workloads(cases: u32) -> Plan {
    let kind = |name: &str| Distribution {
        name: name.to_owned(),
        cases,
    };
    let workload = |name: &str, weight| Workload {
        name: name.to_owned(),
        weight,
        distributions: vec![kind("normal"), kind("spike")],
    };
    Plan {
        workloads: vec![workload("short", 1.0), workload("long", 3.0)],
        baseline: BaselineArm::Own,
        flag_control: FlagControlArm::Own,
        settings: Settings::default(),
    }
}

#[test]
fn workers_see_fresh_cases_and_one_arm_runs_at_a_time() {
    let plan = two_workloads(60);
    let report = measure(&mut Strict::default(), &plan, OrderSeed([5; 32]));
    let set = &report.decision.record.sets[0];
    assert_eq!(set.started.len(), 5);
    let arms_of_first_round: BTreeSet<Role> = set
        .lanes
        .iter()
        .filter(|lane| lane.round == 0 && lane.workload == 0)
        .map(|lane| lane.role)
        .collect();
    assert_eq!(arms_of_first_round.len(), 5);
    for (round, workload) in [(0, 0), (1, 1), (3, 0)] {
        let firsts: BTreeSet<(u32, u32)> = set
            .lanes
            .iter()
            .filter(|lane| lane.round == round && lane.workload == workload)
            .map(|lane| (lane.distribution, lane.first_case))
            .collect();
        assert_eq!(firsts.len(), 1, "all arms of a block get the same cases");
    }
    assert!(set.clocks.iter().all(|clocks| clocks.cpu_ns == Some(0)));
}

#[test]
fn a_small_pool_makes_more_sets_instead_of_repeating_cases() {
    let report = measure(&mut Strict::default(), &two_workloads(25), OrderSeed([5; 32]));
    let rounds =
        |set: &ksmith_judge::bench::SetRecord| set.lanes.iter().map(|lane| lane.round).max().unwrap() + 1;
    assert!(report.decision.record.sets.iter().all(|set| rounds(set) <= 4));
    assert!(report.decision.record.sets.len() >= 15);
    let empty = measure(&mut Strict::default(), &two_workloads(2), OrderSeed([5; 32]));
    assert!(
        matches!(empty.finding, Finding::Broken { .. }),
        "{:?}",
        empty.finding
    );
}

#[test]
fn a_gain_on_one_distribution_only_is_seen_by_distribution_and_not_by_workload() {
    let report = measure(&mut Strict::default(), &two_workloads(60), OrderSeed([6; 32]));
    let over = report.last().over_baseline.as_ref().unwrap();
    assert_eq!(over.distributions.len(), 4);
    let floor = distribution_floor(
        ksmith_judge::statistics::Interval {
            lower: 0.2,
            ..over.all
        },
        DataDependence::Forbidden,
    );
    for part in &over.distributions {
        let short = distribution_falls_short(&part.sets, over.distributions.len(), floor);
        assert_eq!(short.is_some(), part.distribution == Some(1), "{part:?}");
    }
    let parts = over.workloads.iter().map(|part| (part.workload, &part.sets[..]));
    let states: Vec<_> = regressions(parts, 0.02)
        .into_iter()
        .map(|found| found.state)
        .collect();
    assert_eq!(states, [RegressionState::Holds; 2]);
}

#[test]
fn the_same_seed_repeats_the_order_and_another_does_not() {
    let started = |seed| {
        let report = measure(&mut Strict::default(), &two_workloads(60), OrderSeed([seed; 32]));
        report
            .decision
            .record
            .sets
            .iter()
            .map(|set| set.started.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(started(1), started(1));
    assert_ne!(started(1), started(2));
}
