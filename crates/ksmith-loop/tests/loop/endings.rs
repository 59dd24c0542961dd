//! How runs end: within their wall time, on a noisy machine, with a champion that falls, with nothing to begin from.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Entry, History, Kind, Outcome, SignedCertificate, Status, read_records};
use ksmith_loop::step::{Now, Step, next};
use ksmith_loop::{
    InstanceOutcome, Memory, RunOptions, RunOutcome, Silent, Stop, WriterChoice, resume_with, run_with,
};
use ksmith_task::{Backend, ExitCode};

use crate::scripted::{Home, Hooks, Round, Script, resume_options};

fn run(script: &Script, options: &RunOptions) -> (InstanceOutcome, RunOutcome) {
    let outcome = run_with(options, script, &mut Silent).unwrap();
    (outcome.instances[0].clone(), outcome)
}

fn claim(run: &Path) -> String {
    SignedCertificate::read(run).unwrap().unwrap().certificate.claim
}

fn is_intact(run: &Path) {
    let report = verify(run, &VerifyOptions::default());
    assert!(report.is_intact(), "{}", report.sentence());
}

fn count(run: &Path, kind: Kind) -> usize {
    read_records(run)
        .unwrap()
        .iter()
        .filter(|record| record.kind == kind)
        .count()
}

#[test]
fn a_run_on_a_noisy_machine_says_that_no_statement_was_possible_and_exits_with_3() {
    const NOISY: &[Round] = &[("one", &["a speed 2.0 unstated"])];
    let (home, script) = (Home::new(), Script::new(NOISY));
    let (instance, outcome) = run(&script, &home.options());
    assert_eq!((instance.outcome, instance.champion), (Outcome::GoalNotMet, None));
    assert_eq!((instance.unstated, instance.no_statement), (1, true));
    assert_eq!(outcome.exit_code(), ExitCode::Environment);
    let claim = claim(&instance.dir);
    assert!(
        claim.contains("no statement was possible on 1 candidate"),
        "{claim}"
    );
    assert!(!claim.contains("baseline stands"), "{claim}");
    is_intact(&instance.dir);
}

#[test]
fn a_noisy_candidate_beside_a_measured_one_is_told_and_the_goal_is_not_met() {
    const MIXED: &[Round] = &[("one", &["a speed 1.001"]), ("two", &["b speed 2.0 unstated"])];
    let (home, script) = (Home::new(), Script::new(MIXED));
    let (instance, outcome) = run(&script, &home.options());
    assert_eq!((instance.unstated, instance.no_statement), (1, false));
    assert_eq!(outcome.exit_code(), ExitCode::NotAccepted);
    assert!(!claim(&instance.dir).contains("baseline stands"));
}

#[test]
fn a_noisy_last_confirmation_leaves_the_champion_with_the_figures_of_its_promotion() {
    const ROUNDS: &[Round] = &[("one", &["a speed 5.0 final-noisy"])];
    let (home, script) = (Home::new(), Script::new(ROUNDS));
    let (instance, outcome) = run(&script, &home.options());
    assert_eq!(outcome.exit_code(), ExitCode::Done);
    let champion = instance.champion.unwrap();
    assert_eq!(champion.speedup.unwrap().point, 5.0);
    let history = History::load(&instance.dir).unwrap();
    assert_eq!(history.champion().unwrap().status(), Status::Champion);
    assert_eq!(history.champion().unwrap().code(), Some("accept/confirmed"));
    assert!(
        history
            .notes
            .iter()
            .any(|(_, note)| note.text.contains("allowed no statement (bench/noisy)"))
    );
    is_intact(&instance.dir);
}

#[test]
fn a_champion_that_its_last_confirmation_refuses_is_demoted_and_the_one_before_is_confirmed() {
    const ROUNDS: &[Round] = &[
        ("one", &["a speed 4.5"]),
        ("two", &["b speed 5.0 final-fails hidden/wrong-value"]),
    ];
    let (home, script) = (Home::new(), Script::new(ROUNDS));
    let (instance, outcome) = run(&script, &home.options());
    assert_eq!(outcome.exit_code(), ExitCode::Done);
    let history = History::load(&instance.dir).unwrap();
    let named = |text: &str| {
        history
            .candidates
            .iter()
            .find(|candidate| candidate.proposed.hypothesis.starts_with(text))
            .unwrap()
    };
    assert_eq!(named("b speed").status(), Status::Demoted);
    assert_eq!(named("a speed").status(), Status::Champion);
    assert_eq!(count(&instance.dir, Kind::Demoted), 1);
    assert_eq!(instance.champion.unwrap().speedup.unwrap().point, 4.5);
    is_intact(&instance.dir);
}

#[test]
fn a_refused_only_champion_leaves_the_baseline_and_a_certificate_that_says_so() {
    const ROUNDS: &[Round] = &[("one", &["a speed 5.0 final-fails hidden/wrong-value"])];
    let (home, script) = (Home::new(), Script::new(ROUNDS));
    let (instance, outcome) = run(&script, &home.options());
    assert_eq!(
        (outcome.exit_code(), instance.champion),
        (ExitCode::NotAccepted, None)
    );
    assert!(claim(&instance.dir).contains("the baseline stands"));
    is_intact(&instance.dir);
}

/// The memory of a run right after its first promotion, with a wall time of 100 s and scorings of 10 s.
fn promoted() -> Memory {
    const ROUNDS: &[Round] = &[("one", &["a speed 2.0"]), ("two", &["b speed 3.0"])];
    let (home, script) = (Home::new(), Script::new(ROUNDS));
    let (instance, _) = run(&script, &home.options());
    let mut memory = Memory::default();
    for record in read_records(&instance.dir).unwrap() {
        let entry = record.entry().unwrap();
        let last = matches!(entry, Entry::Promoted(_));
        memory.apply(&entry, 0.0).unwrap();
        if last {
            break;
        }
    }
    memory.longest_scoring_s = 10.0;
    memory.opened.as_mut().unwrap().budget.wall_s = Some(100.0);
    memory
}

#[test]
fn the_last_confirmation_fits_into_the_wall_time_or_is_left_out() {
    let mut memory = promoted();
    let champion = memory.champion().unwrap().proposed.candidate.clone();
    let mut at = |spent: f64| {
        memory.spent.wall_s = spent;
        next(&memory, &"screen,plateau,final".parse().unwrap(), Now::default())
    };
    assert_eq!(at(84.0), Step::Propose);
    // 1.2 scorings and 3 s are kept back.
    assert_eq!(at(85.0), Step::Final(champion.clone(), Stop::Wall));
    assert_eq!(at(90.0), Step::Final(champion, Stop::Wall));
    assert_eq!(at(90.1), Step::Close(Stop::Wall));
}

#[test]
fn the_shortlist_leaves_time_for_a_scoring_and_the_last_confirmation() {
    let mut memory = promoted();
    let champion = memory.champion().unwrap().proposed.candidate.clone();
    let mut second = memory.champion().unwrap().clone();
    second.proposed.candidate = "second".into();
    second.decided = None;
    memory.candidates.push(second);
    let on = "screen,plateau,shortlist,final".parse().unwrap();
    let mut at = |spent: f64| {
        memory.spent.wall_s = spent;
        next(&memory, &on, Now::default())
    };
    assert_eq!(at(69.0), Step::Propose);
    // 5 s and a scoring more than the last confirmation needs.
    assert_eq!(at(70.0), Step::Shortlist(Stop::Wall));
    assert_eq!(at(75.0), Step::Shortlist(Stop::Wall));
    assert_eq!(at(75.1), Step::Final(champion, Stop::Wall));
}

#[test]
fn spent_device_time_ends_the_rounds_and_a_run_on_the_cpu_has_none() {
    const ROUNDS: &[Round] = &[
        ("one", &["a speed 2.0"]),
        ("two", &["b speed 3.0"]),
        ("three", &["c speed 4.0"]),
        ("four", &["d speed 5.0"]),
    ];
    let home = Home::new();
    let mut options = home.options();
    options.mechanisms = "screen".parse().unwrap();
    // The judge of these tests says 1 ms for each quick pass and for each gate.
    options.device_s = Some(0.0055);
    options.types = vec!["T=f32".parse().unwrap()];
    for (backend, reason, scored) in [(Backend::Cuda, "device", 2), (Backend::Cpu, "exhausted", 4)] {
        options.backend = backend;
        let (instance, _) = run(&Script::new(ROUNDS), &options);
        assert_eq!((instance.reason.as_str(), instance.candidates), (reason, scored));
        assert_eq!(instance.device_s > 0.0, backend == Backend::Cuda);
        is_intact(&instance.dir);
    }
    options.backend = Backend::Cuda;
    options.device_s = Some(0.0);
    let error = run_with(&options, &Script::new(ROUNDS), &mut Silent).unwrap_err();
    assert!(error.to_string().contains("no device time"), "{error}");
}

#[test]
fn a_step_that_outlasts_the_wall_time_is_halted_and_does_not_count() {
    const ROUNDS: &[Round] = &[("one", &["a speed 2.0"])];
    let home = Home::new();
    let mut script = Script::new(ROUNDS);
    let asked = Arc::clone(&script.asked);
    script.hooks = Hooks {
        before: Some(Arc::new(move |_| {
            let scores = asked.lock().unwrap().iter().any(|what| what.starts_with("score"));
            if scores {
                std::thread::sleep(Duration::from_secs(5));
            }
        })),
        halts: true,
        ..Hooks::default()
    };
    let mut options = home.options();
    options.wall_s = Some(5.0);
    let (instance, _) = run(&script, &options);
    assert_eq!((instance.reason.as_str(), instance.candidates), ("wall", 0));
    // On a machine that is very slow the time is up before a scoring begins.
    let begun = script.asked().iter().any(|what| what.starts_with("score"));
    assert_eq!(
        (instance.unstated, instance.no_statement),
        (u64::from(begun), false)
    );
    assert_ne!(claim(&instance.dir).contains("baseline stands"), begun);
    assert_eq!(count(&instance.dir, Kind::Decided), 0);
    is_intact(&instance.dir);
}

#[test]
fn an_interrupt_throws_the_step_in_flight_away_and_resume_does_it_again() {
    const ROUNDS: &[Round] = &[("one", &["a speed 5.0"])];
    let home = Home::new();
    let mut script = Script::new(ROUNDS);
    let options = home.options();
    let (interrupt, asked) = (options.interrupt.clone(), Arc::clone(&script.asked));
    script.hooks = Hooks {
        before: Some(Arc::new(move |_| {
            if asked.lock().unwrap().iter().any(|what| what.starts_with("score")) {
                interrupt.request();
            }
        })),
        halts: true,
        ..Hooks::default()
    };
    let (stopped, outcome) = run(&script, &options);
    assert_eq!(stopped.outcome, Outcome::Interrupted);
    assert_eq!(outcome.exit_code(), ExitCode::Interrupted);
    assert_eq!(count(&stopped.dir, Kind::Decided), 0);
    script.hooks = Hooks::default();
    let again = resume_options(home.folder.path(), &stopped.dir);
    let outcome = resume_with(&again, &script, &mut Silent).unwrap();
    assert_eq!(outcome.instances[0].outcome, Outcome::GoalMet);
    is_intact(&stopped.dir);
}

#[test]
fn a_writer_that_is_not_there_and_a_budget_of_nothing_leave_no_run_behind() {
    let home = Home::new();
    let empty = home.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let with = |change: &dyn Fn(&mut RunOptions)| {
        let mut options = home.options();
        change(&mut options);
        ksmith_loop::run(&options, &mut Silent).unwrap_err()
    };
    for (error, what) in [
        (
            with(&|options| options.writer = WriterChoice::Folder("/nope".into())),
            "cannot read folder `/nope`",
        ),
        (
            with(&|options| options.writer = WriterChoice::Folder(empty.clone())),
            "no folder with a `candidate.toml`",
        ),
        (with(&|options| options.candidates = Some(0)), "no full scoring"),
        (with(&|options| options.wall_s = Some(0.0)), "no wall time"),
    ] {
        let text = format!(
            "{error}: {:?}",
            std::error::Error::source(&error).map(ToString::to_string)
        );
        assert!(text.contains(what), "{text}");
        assert_eq!(error.exit_code(), ExitCode::Usage);
        assert!(error.hint().is_some(), "{text}");
    }
    assert!(!home.folder.path().join(".ksmith").exists());
}

#[test]
fn instances_share_the_wall_time_and_none_is_left_out() {
    const ROUNDS: &[Round] = &[("one", &["a speed 2.0"])];
    let home = Home::new();
    let script = Script::new(ROUNDS);
    let mut options = home.options();
    options.task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/layernorm");
    options.wall_s = Some(1000.0);
    let outcome = run_with(&options, &script, &mut Silent).unwrap();
    assert_eq!(outcome.instances.len(), 2);
    let walls: Vec<f64> = outcome
        .instances
        .iter()
        .map(|instance| {
            History::load(&instance.dir)
                .unwrap()
                .opened
                .budget
                .wall_s
                .unwrap()
        })
        .collect();
    assert!((walls[0] - 500.0).abs() < 1.0, "{walls:?}");
    assert!(walls[1] > 500.0 && walls[1] <= 1000.0, "{walls:?}");
    assert!(
        outcome
            .instances
            .iter()
            .all(|instance| instance.champion.is_some())
    );
}

#[test]
fn a_run_that_its_audit_refused_is_not_gone_on_with() {
    let (home, mut script) = (Home::new(), Script::new(&[("one", &["a speed 2.0"])]));
    script.hooks.audit = vec!["an all-zero candidate passes".to_owned()];
    let refused = run_with(&home.options(), &script, &mut Silent).unwrap_err();
    assert_eq!(refused.exit_code(), ExitCode::Usage);
    let runs = home.options().home.join(".ksmith/runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let before = read_records(&run).unwrap().len();
    script.hooks.audit.clear();
    let options = resume_options(home.folder.path(), &run);
    let again = resume_with(&options, &script, &mut Silent).unwrap_err();
    assert_eq!(
        (again.to_string(), again.exit_code()),
        (refused.to_string(), ExitCode::Usage)
    );
    assert_eq!(read_records(&run).unwrap().len(), before, "nothing is appended");
    assert!(script.asked().is_empty());
    assert_eq!(History::load(&run).unwrap().ending(), "refused by its audit");
}
