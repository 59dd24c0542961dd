//! What the loop does with verdicts, budgets, directions and interruptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Entry, History, Kind, Outcome, Role, read_records};
use ksmith_loop::{InstanceOutcome, RunError, Silent, resume_with, run_with};
use ksmith_task::ExitCode;

use crate::scripted::{Home, Hooks, Round, Script, resume_options, run};

const GOOD: &[Round] = &[
    (
        "vector",
        &[
            "a speed 2.0",
            "b speed 5.0",
            "c speed 4.0",
            "d leaves compile/error",
        ],
    ),
    ("threads", &["e speed 4.0", "f speed 6.5 fails hidden/mismatch"]),
];

fn kinds(outcome: &InstanceOutcome) -> Vec<Kind> {
    read_records(&outcome.dir)
        .unwrap()
        .iter()
        .map(|record| record.kind)
        .collect()
}

fn position(kinds: &[Kind], kind: Kind) -> usize {
    kinds
        .iter()
        .position(|found| *found == kind)
        .unwrap_or_else(|| panic!("no `{kind}` record"))
}

#[test]
fn a_run_ends_with_the_fastest_correct_candidate_confirmed_and_verifiable() {
    let (home, script) = (Home::new(), Script::new(GOOD));
    let outcome = run(&script, &home.options());
    assert_eq!(outcome.outcome, Outcome::GoalMet);
    assert_eq!(outcome.reason, "exhausted");
    let champion = outcome.champion.clone().unwrap();
    assert_eq!(champion.speedup.map(|gain| gain.point), Some(5.0));
    assert_eq!(champion.over_flag_control.map(|gain| gain.point), Some(5.0));
    let history = History::load(&outcome.dir).unwrap();
    assert_eq!(
        history.candidate(&champion.id).unwrap().proposed.hypothesis,
        "b speed 5.0"
    );
    let report = verify(
        &outcome.dir,
        &VerifyOptions {
            head: Some(outcome.head.into()),
            ..VerifyOptions::default()
        },
    );
    assert!(report.is_intact(), "{report:?}");
    assert!(report.certificate.is_some());
    for file in [
        "draft.md",
        "plan.md",
        "candidates.jsonl",
        "benchmark.csv",
        "task.lock.json",
        "certificate.json",
    ] {
        assert!(outcome.dir.join(file).is_file(), "{file}");
    }
}

#[test]
fn every_secret_is_committed_in_the_record_before_the_judge_uses_it() {
    let (home, mut script) = (Home::new(), Script::new(GOOD));
    let runs = home.folder.path().join(".ksmith/runs");
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    script.hooks = Hooks {
        before: Some(Arc::new(move |number| {
            let run = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
            let drawn = std::fs::read_to_string(run.join("secrets")).unwrap_or_default();
            let committed: Vec<String> = read_records(&run)
                .unwrap()
                .iter()
                .filter_map(|record| match record.entry() {
                    Ok(Entry::Committed(committed)) => Some(committed.seed.purpose),
                    _ => None,
                })
                .collect();
            for purpose in drawn.lines() {
                assert!(
                    committed.iter().any(|known| known == purpose),
                    "judgement {number} runs with `{purpose}`, which the record does not hold"
                );
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        })),
        ..Hooks::default()
    };
    run(&script, &home.options());
    assert!(seen.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

#[test]
fn draft_and_plan_stand_before_any_candidate_and_the_flag_control_is_the_first() {
    let (home, script) = (Home::new(), Script::new(GOOD));
    let outcome = run(&script, &home.options());
    let kinds = kinds(&outcome);
    assert_eq!(kinds[0], Kind::RunOpened);
    assert_eq!(kinds.last(), Some(&Kind::Closed));
    assert!(position(&kinds, Kind::Draft) < position(&kinds, Kind::Plan));
    assert!(position(&kinds, Kind::Plan) < position(&kinds, Kind::Proposed));
    let history = History::load(&outcome.dir).unwrap();
    assert_eq!(history.candidates[0].proposed.role, Role::FlagControl);
}

#[test]
fn of_a_round_only_the_most_promising_are_scored_until_one_is_measured() {
    let (home, script) = (Home::new(), Script::new(GOOD));
    run(&script, &home.options());
    let scored: Vec<String> = script
        .asked()
        .into_iter()
        .filter(|what| what.starts_with("score"))
        .collect();
    // No flag control, since all of them are as fast as the baseline; `b` of the first round; of the second `f`, whose failed gate says nothing of `e`,
    // and `e` itself looks slower than the champion.
    assert_eq!(scored, ["score c0008", "score c0012"]);
}

/// The quick pass takes `a` for the best of its round, and `b` is.
const NOISY: &[Round] = &[
    (
        "one",
        &[
            "a speed 4.0 looks 5.0",
            "b speed 5.0 looks 3.9",
            "c speed 3.9",
            "d speed 1.0",
        ],
    ),
    ("two", &["e speed 4.3 looks 3.8"]),
];

#[test]
fn the_truly_best_is_scored_however_noisy_the_quick_pass_is() {
    let (home, script) = (Home::new(), Script::new(NOISY));
    let mut options = home.options();
    let interrupt = options.interrupt.clone();
    let mut stopping = script.clone();
    stopping.hooks.before = Some(Arc::new({
        let asked = Arc::clone(&script.asked);
        move |_| {
            if asked
                .lock()
                .unwrap()
                .last()
                .is_some_and(|what| what.starts_with("beside"))
            {
                interrupt.request();
            }
        }
    }));
    let stopped = run(&stopping, &options);
    assert_eq!(stopped.outcome, Outcome::Interrupted);
    let outcome = resume_with(
        &resume_options(home.folder.path(), &stopped.dir),
        &script,
        &mut Silent,
    )
    .unwrap();
    let asked = script.asked();
    // `a`; `e` is not promising; of the shortlist `b`, and no other beside it.
    let late: Vec<&str> = asked
        .iter()
        .map(String::as_str)
        .filter(|what| !what.starts_with("screen"))
        .collect();
    assert_eq!(
        late,
        [
            "baseline baseline",
            "score c0007",
            "beside c0008",
            "score c0008",
            "confirm c0008"
        ]
    );
    let champion = outcome.instances[0].champion.clone().unwrap();
    assert_eq!(
        (champion.id.as_str(), champion.speedup.unwrap().point),
        ("c0008", 5.0)
    );
    assert_eq!(outcome.instances[0].reason, "exhausted");
    let records = read_records(&stopped.dir).unwrap();
    let lists: Vec<_> = records
        .iter()
        .filter_map(|record| match record.entry() {
            Ok(Entry::Shortlisted(list)) => Some(list),
            _ => None,
        })
        .collect();
    assert_eq!(lists.len(), 1, "it is not measured twice");
    let ratios: Vec<(&str, f64)> = lists[0]
        .entries
        .iter()
        .map(|entry| (entry.candidate.as_str(), entry.ratio.unwrap()))
        .collect();
    assert_eq!(ratios, [("c0008", 1.25), ("c0009", 0.975), ("c0011", 1.075)]);
    assert!(verify(&stopped.dir, &VerifyOptions::default()).is_intact());

    options = home.options();
    options.mechanisms = "flag-control,screen,final".parse().unwrap();
    let without = run(&Script::new(NOISY), &options);
    assert_eq!(without.champion.unwrap().speedup.unwrap().point, 4.0);
}

#[test]
fn without_mechanisms_there_is_only_the_goal() {
    let (home, script) = (Home::new(), Script::new(GOOD));
    let mut options = home.options();
    options.mechanisms = "none".parse().unwrap();
    let outcome = run(&script, &options);
    let kinds = kinds(&outcome);
    for absent in [Kind::Audited, Kind::Draft, Kind::Plan, Kind::Screened] {
        assert!(!kinds.contains(&absent), "{absent}");
    }
    let history = History::load(&outcome.dir).unwrap();
    assert!(history.opened.mechanisms.len() > 5 && history.opened.mechanisms.values().all(|on| !on));
    assert!(
        history
            .candidates
            .iter()
            .all(|candidate| candidate.proposed.role == Role::Candidate)
    );
    assert_eq!(outcome.outcome, Outcome::GoalMet);
}

#[test]
fn a_direction_is_left_after_five_rounds_without_a_gain() {
    const STUCK: &[Round] = &[
        ("stuck", &["a speed 0.9"]),
        ("stuck", &["b speed 0.91"]),
        ("stuck", &["c speed 0.92"]),
        ("stuck", &["d speed 0.93"]),
        ("stuck", &["e speed 0.94"]),
        ("stuck", &["f speed 9.0"]),
        ("other", &["g speed 3.0"]),
    ];
    let (home, script) = (Home::new(), Script::new(STUCK));
    let outcome = run(&script, &home.options());
    let history = History::load(&outcome.dir).unwrap();
    let tried: Vec<&str> = history
        .candidates
        .iter()
        .filter(|candidate| candidate.proposed.role == Role::Candidate)
        .map(|candidate| candidate.proposed.hypothesis.as_str())
        .collect();
    assert_eq!(
        tried,
        [
            "a speed 0.9",
            "b speed 0.91",
            "c speed 0.92",
            "d speed 0.93",
            "e speed 0.94",
            "g speed 3.0"
        ]
    );
    assert_eq!(outcome.champion.unwrap().speedup.unwrap().point, 3.0);
}

#[test]
fn the_candidate_budget_is_a_hard_stop() {
    for (candidates, scored) in [(1, 1), (2, 2)] {
        let (home, script) = (Home::new(), Script::new(GOOD));
        let mut options = home.options();
        options.candidates = Some(candidates);
        let outcome = run(&script, &options);
        let asked = script.asked();
        assert_eq!(
            asked.iter().filter(|what| what.starts_with("score")).count(),
            scored,
            "{asked:?}"
        );
        assert_eq!(
            (outcome.candidates, outcome.reason.as_str()),
            (candidates, "candidates")
        );
    }
}

#[test]
fn spent_wall_time_ends_the_rounds_and_the_baseline_stands() {
    let (home, script) = (Home::new(), Script::new(GOOD));
    let mut options = home.options();
    options.wall_s = Some(1e-6);
    let outcome = run(&script, &options);
    assert_eq!((outcome.outcome, outcome.champion), (Outcome::GoalNotMet, None));
    assert_eq!(outcome.reason, "wall");
    let certificate = std::fs::read_to_string(outcome.dir.join("certificate.json")).unwrap();
    assert!(certificate.contains("Nothing was measured") && !certificate.contains("baseline stands"));
}

#[test]
fn bytes_that_were_tried_and_folders_that_are_no_candidate_leave_unjudged() {
    const REPEATS: &[Round] = &[
        ("one", &["a speed 2.0"]),
        ("one", &["again a speed 2.0", "broken b speed 3.0"]),
    ];
    let (home, script) = (Home::new(), Script::new(REPEATS));
    let outcome = run(&script, &home.options());
    let history = History::load(&outcome.dir).unwrap();
    let codes: BTreeMap<&str, Option<&str>> = history
        .candidates
        .iter()
        .filter(|candidate| candidate.proposed.role == Role::Candidate)
        .map(|candidate| (candidate.proposed.hypothesis.as_str(), candidate.code()))
        .collect();
    assert_eq!(codes["again a speed 2.0"], Some("policy/duplicate"));
    assert_eq!(codes["broken b speed 3.0"], Some("policy/manifest"));
}

#[test]
fn an_edit_of_a_locked_file_stops_the_run_with_exit_4() {
    let home = Home::new();
    let mut script = Script::new(GOOD);
    let reference = home.task().join("reference.c");
    script.hooks = Hooks {
        before: Some(Arc::new(move |number| {
            if number == 9 {
                std::fs::write(&reference, "/* easier */").unwrap();
            }
        })),
        ..Hooks::default()
    };
    let error = run_with(&home.options(), &script, &mut Silent).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Changed);
    assert!(
        matches!(&error, RunError::Changed(files) if files == &["`reference.c` differs"]),
        "{error}"
    );
    let runs = home.folder.path().join(".ksmith/runs");
    let run = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let records = read_records(&run).unwrap();
    assert!(matches!(
        records.last().unwrap().entry().unwrap(),
        Entry::Interrupted(_)
    ));
    let options = resume_options(home.folder.path(), &run);
    assert_eq!(
        resume_with(&options, &script, &mut Silent)
            .unwrap_err()
            .exit_code(),
        ExitCode::Changed
    );
}

#[test]
fn an_interrupted_run_is_resumed_without_repeating_a_finished_step() {
    let home = Home::new();
    let mut script = Script::new(GOOD);
    let options = home.options();
    let interrupt = options.interrupt.clone();
    script.hooks = Hooks {
        before: Some(Arc::new(move |number| {
            if number == 11 {
                interrupt.request();
            }
        })),
        ..Hooks::default()
    };
    let stopped = run(&script, &options);
    assert_eq!(stopped.outcome, Outcome::Interrupted);
    assert!(stopped.dir.join("candidates.jsonl").is_file());
    script.hooks = Hooks::default();
    let outcome = resume_with(
        &resume_options(home.folder.path(), &stopped.dir),
        &script,
        &mut Silent,
    )
    .unwrap();
    assert_eq!(outcome.instances[0].outcome, Outcome::GoalMet);
    let mut asked = script.asked();
    let whole = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), whole, "a finished step was repeated");
    assert!(verify(&stopped.dir, &VerifyOptions::default()).is_intact());
    // A closed run is not touched: resuming it gives the same answer.
    let again = resume_with(
        &resume_options(home.folder.path(), &stopped.dir),
        &script,
        &mut Silent,
    )
    .unwrap();
    assert_eq!(again, outcome);
}
