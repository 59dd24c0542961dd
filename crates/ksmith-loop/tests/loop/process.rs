//! Process gates in a run: what a writer leaves, repeats and claims, and when the run changes course.

use std::path::Path;

use ksmith_agents::process::{Claim, Claimed, Statement};
use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{History, Outcome, Role};
use ksmith_loop::arena::{Arena, ArenaError};
use ksmith_loop::writer::{Direction, Writer, WriterError};
use ksmith_loop::{Postmortem, Sandbox, Setting, Workshop, WriterChoice};
use ksmith_task::{Backend, Brief, Instance, Proposal};

use crate::scripted::{Home, Round, Script, TWO, gate_codes, run};

#[test]
fn repeats_under_other_layout_and_lists_of_ideas_are_refused_unjudged() {
    const REPEATS: &[Round] = &[
        ("one", &["a leaves slow/slower"]),
        ("one", &["again  a   leaves slow/slower"]),
        ("one", &["b speed 0.8. Then unroll it."]),
    ];
    let home = Home::new();
    let script = Script::new(REPEATS);
    let outcome = run(&script, &home.options());
    let history = History::load(&outcome.dir).unwrap();
    let codes: Vec<Option<&str>> = history
        .candidates
        .iter()
        .filter(|candidate| candidate.proposed.role == Role::Candidate)
        .map(|candidate| candidate.code())
        .collect();
    assert_eq!(
        codes[1..],
        [Some("process/identical"), Some("process/hypothesis")]
    );
    let judged = script.asked();
    for candidate in history
        .candidates
        .iter()
        .filter(|candidate| candidate.refused.is_some())
    {
        assert!(
            !judged.iter().any(|what| what.ends_with(candidate.id())),
            "{judged:?}"
        );
    }
}

#[test]
fn a_direction_that_keeps_failing_is_closed_and_a_run_that_stalls_is_planned_anew() {
    const FAILING: &[Round] = &[
        ("bad", &["a leaves dev/crash"]),
        ("bad", &["b leaves dev/crash"]),
        ("bad", &["c leaves dev/crash"]),
        ("bad", &["never speed 9.0"]),
        ("slow1", &["d leaves slow/slower"]),
        ("slow1", &["e leaves slow/slower"]),
        ("slow1", &["f leaves slow/slower"]),
        ("slow2", &["g leaves slow/slower"]),
        ("slow2", &["h leaves slow/slower"]),
        ("slow2", &["i leaves slow/slower"]),
    ];
    let home = Home::new();
    let outcome = run(&Script::new(FAILING), &home.options());
    assert_eq!(gate_codes(&outcome), ["process/repeated-error", "process/stall"]);
    let history = History::load(&outcome.dir).unwrap();
    assert!(
        history
            .candidates
            .iter()
            .all(|candidate| candidate.proposed.hypothesis != "never speed 9.0")
    );
    assert_eq!(history.plans.len(), 2);
    assert!(
        history.plans[1]
            .steps
            .iter()
            .all(|step| !step.step.contains("`bad`"))
    );
    assert!(verify(&outcome.dir, &VerifyOptions::default()).is_intact());
}

#[test]
fn a_fourth_shuffle_of_what_was_dropped_three_times_for_one_reason_is_refused_unjudged() {
    // The numbers alone differ: as texts they are four candidates, as programs nearly one.
    const SHUFFLES: &[Round] = &[
        ("one", &["a leaves slow/slower"]),
        ("two", &["b leaves slow/slower"]),
        ("three", &["c leaves slow/slower"]),
        ("four", &["d speed 9.0"]),
    ];
    let home = Home::new();
    let long = |folder: &Path| {
        let path = folder.join("kernel.c");
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: String = (0..60)
            .map(|i| format!("void f{i}(float *y) {{ y[{i}] = {i}.5f; }}\n"))
            .collect();
        std::fs::write(&path, format!("{text}{lines}")).unwrap();
    };
    let script = Script::new(SHUFFLES);
    let outcome = run(&Talking(script.clone(), long), &home.options());
    let history = History::load(&outcome.dir).unwrap();
    let last = history.candidates.last().unwrap();
    assert_eq!(
        (last.proposed.direction.as_str(), last.code()),
        ("four", Some("process/near-identical"))
    );
    assert!(!script.asked().iter().any(|what| what.ends_with(last.id())));
    assert!(outcome.champion.is_none());
}

#[test]
fn a_run_without_any_gain_is_planned_anew_changes_family_and_stops() {
    const NONE: &[Round] = &[
        ("a", &["a1 leaves slow/slower"]),
        ("a", &["a2 leaves slow/slower"]),
        ("a", &["a3 leaves slow/slower"]),
        ("a", &["a4 leaves slow/slower"]),
        ("b", &["b1 leaves slow/slower"]),
        ("b", &["b2 leaves slow/slower"]),
        ("b", &["b3 leaves slow/slower"]),
        ("b", &["b4 leaves slow/slower"]),
        ("c", &["c1 leaves slow/slower"]),
        ("c", &["c2 leaves slow/slower"]),
        ("c", &["c3 leaves slow/slower"]),
        ("c", &["c4 leaves slow/slower"]),
        ("d", &["d1 leaves slow/slower"]),
        ("d", &["d2 leaves slow/slower"]),
        ("d", &["d3 leaves slow/slower"]),
        ("d", &["d4 leaves slow/slower"]),
        ("a", &["a5 speed 9.0"]),
        ("e", &["e1 leaves slow/slower"]),
        ("e", &["e2 leaves slow/slower"]),
        ("e", &["e3 leaves slow/slower"]),
        ("e", &["e4 leaves slow/slower"]),
        ("f", &["f1 leaves slow/slower"]),
        ("f", &["f2 leaves slow/slower"]),
        ("f", &["f3 leaves slow/slower"]),
        ("f", &["f4 leaves slow/slower"]),
        ("g", &["never speed 9.0"]),
    ];
    let home = Home::new();
    let outcome = run(&Script::new(NONE), &home.options());
    assert_eq!(
        (outcome.reason.as_str(), outcome.champion.clone()),
        ("plateau", None)
    );
    let rungs: Vec<String> = crate::scripted::picked(&outcome.dir, |entry| match entry {
        ksmith_ledger::Entry::ProcessGate(gate) if gate.code == "process/stall" => {
            Some(gate.data["rung"].as_str().unwrap().to_owned())
        }
        _ => None,
    });
    assert_eq!(rungs, ["replan", "other-family"]);
    let history = History::load(&outcome.dir).unwrap();
    let tried = |hypothesis: &str| {
        let mut candidates = history.candidates.iter();
        candidates.any(|candidate| candidate.proposed.hypothesis == hypothesis)
    };
    // The family that was left is not gone back to, and no round follows the last rung.
    assert!(!tried("a5 speed 9.0") && tried("f4 leaves slow/slower") && !tried("never speed 9.0"));
}

/// A writer that leaves hostile folders and says too much.
struct Talker {
    inner: Box<dyn Writer>,
    act: fn(&Path),
}

impl Writer for Talker {
    fn name(&self) -> String {
        "talker".into()
    }

    fn directions(&mut self, brief: &Brief) -> Result<Vec<Direction>, WriterError> {
        self.inner.directions(brief)
    }

    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        let proposals = self.inner.propose(brief, wanted)?;
        for proposal in &proposals {
            (self.act)(&proposal.folder);
        }
        Ok(proposals)
    }

    fn statement(&mut self) -> Statement {
        Statement {
            claims: vec![
                Claim {
                    claimed: Claimed::Faster { ratio: 9.0 },
                    evidence: None,
                },
                Claim {
                    claimed: Claimed::Correct,
                    evidence: Some("f".repeat(64)),
                },
            ],
            prose: "All tests pass.".into(),
        }
    }
}

struct Talking(Script, fn(&Path));

impl Workshop for Talking {
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError> {
        self.0.arena(instance, backend, run, sandbox)
    }

    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        Ok(Box::new(Talker {
            inner: self.0.writer(choice, setting)?,
            act: self.1,
        }))
    }
}

/// What a writer does to its folder.
type Act = fn(&Path);

#[test]
fn links_secrets_and_floods_never_reach_the_record() {
    let hostile: [(Act, &str); 3] = [
        (
            |folder| std::os::unix::fs::symlink("/etc/passwd", folder.join("extra.c")).unwrap(),
            "process/link",
        ),
        (
            |folder| {
                let key = format!("// {}{}\n", "sk-ant-", "a1b2c3d4e5f6a7b8c9d0e1f2");
                std::fs::write(folder.join("kernel.c"), key).unwrap();
            },
            "process/secret",
        ),
        (
            |folder| std::fs::write(folder.join("table.c"), vec![b'x'; 1 << 20]).unwrap(),
            "process/too-large",
        ),
    ];
    for (act, code) in hostile {
        let home = Home::new();
        let outcome = run(&Talking(Script::new(TWO), act), &home.options());
        assert!(outcome.champion.is_none(), "{code}");
        let codes = gate_codes(&outcome);
        assert!(
            !codes.is_empty() && codes.iter().all(|found| found == code),
            "{codes:?}"
        );
        let history = History::load(&outcome.dir).unwrap();
        let last = history.candidates.last().unwrap();
        assert_eq!((last.proposed.tree.files, last.code()), (0, Some(code)));
        assert!(verify(&outcome.dir, &VerifyOptions::default()).is_intact());
    }
}

#[test]
fn what_a_writer_claims_is_checked_and_changes_nothing() {
    let home = Home::new();
    let outcome = run(&Talking(Script::new(TWO), |_| {}), &home.options());
    assert_eq!(outcome.outcome, Outcome::GoalMet);
    let codes = gate_codes(&outcome);
    assert_eq!(
        codes[..2],
        ["process/claim-without-evidence", "process/unknown-evidence"]
    );
}

/// Claims each of its candidates to be eight times as fast, by the verdict that the brief named last.
struct Citing(Box<dyn Writer>, Option<String>);

impl Writer for Citing {
    fn name(&self) -> String {
        "citing".into()
    }

    fn directions(&mut self, brief: &Brief) -> Result<Vec<Direction>, WriterError> {
        self.0.directions(brief)
    }

    fn propose(&mut self, brief: &Brief, wanted: usize) -> Result<Vec<Proposal>, WriterError> {
        let told = brief.history.iter().rev();
        self.1 = told
            .filter_map(|past| past.evidence.strip_prefix("verdict "))
            .map(|rest| rest.split(": ").next().unwrap_or(rest).to_owned())
            .next();
        self.0.propose(brief, wanted)
    }

    fn statement(&mut self) -> Statement {
        Statement {
            claims: vec![Claim {
                claimed: Claimed::Faster { ratio: 8.0 },
                evidence: self.1.clone(),
            }],
            prose: String::new(),
        }
    }
}

struct Cites(Script);

impl Workshop for Cites {
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError> {
        self.0.arena(instance, backend, run, sandbox)
    }

    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        Ok(Box::new(Citing(self.0.writer(choice, setting)?, None)))
    }
}

#[test]
fn a_claim_by_the_verdict_on_other_files_is_stale_and_by_one_that_shows_less_is_too_much() {
    // The third candidate is the second again, so the verdict on the second is about its very files.
    const AGAIN: &[Round] = &[
        ("one", &["a speed 2.0"]),
        ("two", &["b speed 1.99"]),
        ("two", &["again b speed 1.99"]),
    ];
    let home = Home::new();
    let outcome = run(&Cites(Script::new(AGAIN)), &home.options());
    let codes = gate_codes(&outcome);
    let claims: Vec<&str> = codes
        .iter()
        .map(String::as_str)
        .filter(|code| code.contains("evidence"))
        .collect();
    assert_eq!(
        claims,
        [
            "process/claim-without-evidence",
            "process/stale-evidence",
            "process/claim-beyond-evidence"
        ]
    );
    assert_eq!(
        outcome.champion.unwrap().speedup.unwrap().point,
        2.0,
        "the files decide"
    );
}

#[test]
fn a_post_mortem_is_computed_from_the_record() {
    const MIXED: &[Round] = &[
        ("vector", &["a speed 2.0"]),
        ("threads", &["b speed 4.0"]),
        ("tiles", &["c leaves slow/slower"]),
        ("tiles", &["d speed 3.0"]),
    ];
    let home = Home::new();
    let outcome = run(&Script::new(MIXED), &home.options());
    let found = Postmortem::of(&outcome.dir).unwrap();
    // The scripted writer predicts 2.0 for each; 2.0 and then 4.0 / 2.0 were measured, `c` left in
    // the quick pass, `d` looked slower and was never judged.
    assert_eq!((found.claims.accepted, found.claims.predicted), (2, 3));
    assert_eq!((found.waste.without_gain, found.waste.rounds), (2, 4));
    assert_eq!(found.waste.ratio, Some(0.5));
    assert_eq!(found.prediction.pairs, 2);
    assert!((found.prediction.median_factor.unwrap() - 1.0).abs() < 1e-9);
    let lower = found.gain.over_baseline.unwrap().lower;
    assert!((found.gain.per_round.unwrap() - lower.powf(0.25)).abs() < 1e-12);
    assert_eq!((found.gain.per_dollar, found.waiting_s), (None, 0.0));
    assert_eq!(found.reviews.vetoes, 0);
    assert!(found.reviews.held >= 4);
    let text = found.to_string();
    assert!(text.contains("2 of 3 predicted gains accepted (67 %)"), "{text}");
    assert!(
        text.ends_with("this is no statement about GPU performance."),
        "{text}"
    );
}
