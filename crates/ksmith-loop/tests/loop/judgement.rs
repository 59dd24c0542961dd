//! What reviewers do in a run: they stop, direct and record; they never promote.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ksmith_agents::process::Cause;
use ksmith_agents::review::{
    Answer, ContractAnswer, ContractRequest, Critique, Decision, Finding, Held, Identity, Next, Occasion,
    PlanChange, PlanRequest, Request, Review, Reviewer, RulesReviewer, SameVendor, Vendor, Verdict, Weight,
    Word,
};
use ksmith_ledger::verify::{VerifyOptions, verify};
use ksmith_ledger::{Entry, History, Kind, Outcome, read_records};
use ksmith_loop::arena::{Arena, ArenaError};
use ksmith_loop::writer::{Writer, WriterError};
use ksmith_loop::{
    ReviewOptions, ReviewerChoice, ReviewerError, RunError, Sandbox, Setting, Silent, Workshop, WriterChoice,
    run_with,
};
use ksmith_task::{Backend, ExitCode, Instance};

use crate::scripted::{Home, Round, Script, TWO, entries, gate_codes, run};

type Opinion = Arc<dyn Fn(&Request) -> Verdict + Send + Sync>;
type PlanOpinion = Arc<dyn Fn(&PlanRequest) -> Option<Critique> + Send + Sync>;

/// A workshop whose reviewer says what a closure says.
struct Reviewed {
    script: Script,
    opinion: Opinion,
    plan: PlanOpinion,
    requests: Arc<Mutex<Vec<Request>>>,
    vendor: Vendor,
}

impl Reviewed {
    fn new(rounds: &'static [Round], opinion: impl Fn(&Request) -> Verdict + Send + Sync + 'static) -> Self {
        Self {
            script: Script::new(rounds),
            opinion: Arc::new(opinion),
            plan: Arc::new(|_| Some(Critique::default())),
            requests: Arc::default(),
            vendor: Vendor::Named("other".into()),
        }
    }

    fn crowns(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|request| request.occasion == Occasion::Crown)
            .filter_map(|request| request.candidate.clone())
            .collect()
    }
}

impl Workshop for Reviewed {
    fn arena(
        &self,
        instance: &Instance,
        backend: Backend,
        run: &Path,
        sandbox: Sandbox,
    ) -> Result<Box<dyn Arena>, ArenaError> {
        self.script.arena(instance, backend, run, sandbox)
    }

    fn writer(&self, choice: &WriterChoice, setting: &Setting<'_>) -> Result<Box<dyn Writer>, WriterError> {
        self.script.writer(choice, setting)
    }

    fn reviewer(
        &self,
        _: &ReviewOptions,
        _: &Setting<'_>,
    ) -> Result<Option<Box<dyn Reviewer>>, ReviewerError> {
        Ok(Some(Box::new(Scripted {
            identity: Identity {
                name: "scripted".into(),
                vendor: self.vendor.clone(),
            },
            opinion: Arc::clone(&self.opinion),
            plan: Arc::clone(&self.plan),
            requests: Arc::clone(&self.requests),
        })))
    }
}

struct Scripted {
    identity: Identity,
    opinion: Opinion,
    plan: PlanOpinion,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl Reviewer for Scripted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn review(&mut self, request: &Request) -> Review {
        self.requests.lock().unwrap().push(request.clone());
        Review {
            verdict: (self.opinion)(request),
            attempts: Vec::new(),
        }
    }

    fn contract(&mut self, request: &ContractRequest) -> Held<ContractAnswer> {
        RulesReviewer::default().contract(request)
    }

    fn plan(&mut self, request: &PlanRequest) -> Held<Critique> {
        Held {
            answer: (self.plan)(request),
            attempts: Vec::new(),
        }
    }
}

fn pass() -> Verdict {
    Verdict::Given(Answer {
        word: Word::Pass,
        findings: Vec::new(),
        next: None,
    })
}

fn veto(key: &str) -> Verdict {
    Verdict::Given(Answer {
        word: Word::Veto,
        findings: vec![Finding {
            key: key.into(),
            weight: Weight::Blocking,
            location: "kernel.c:1".into(),
            text: format!("{key} is wrong"),
            evidence: "cols = 33".into(),
        }],
        next: None,
    })
}

#[test]
fn every_champion_was_reviewed_on_its_very_files_before_it_was_crowned() {
    let home = Home::new();
    let outcome = run(&Script::new(TWO), &home.options());
    assert_eq!(outcome.outcome, Outcome::GoalMet);
    let mut reviewed = Vec::new();
    let mut crowned = 0;
    let history = History::load(&outcome.dir).unwrap();
    for entry in entries(&outcome) {
        match entry {
            Entry::Reviewed(review) => {
                let detail = review.detail.unwrap();
                if detail.occasion == "crown" {
                    assert_eq!(
                        (detail.outcome.as_str(), detail.independence.as_str()),
                        ("pass", "no-model")
                    );
                    reviewed.push((review.candidate.unwrap(), detail.source));
                }
            }
            Entry::Promoted(promoted) => {
                let digest = history.candidate(&promoted.candidate).unwrap().proposed.digest;
                assert!(reviewed.contains(&(promoted.candidate.clone(), digest)));
                crowned += 1;
            }
            _ => {}
        }
    }
    assert_eq!((crowned, history.opened.reviewer.as_deref()), (2, Some("lint")));
    assert!(verify(&outcome.dir, &VerifyOptions::default()).is_intact());
}

#[test]
fn a_veto_and_a_missing_verdict_keep_the_crown_and_the_baseline_stands() {
    for (verdict, code) in [
        (veto("odd-tail"), "review/veto"),
        (Verdict::NotPassed(Cause::ReviewEmpty), "review/empty"),
        (Verdict::NotPassed(Cause::ReviewNotJson), "review/not-json"),
        (Verdict::NotPassed(Cause::ReviewWrongNonce), "review/wrong-nonce"),
    ] {
        let home = Home::new();
        let workshop = Reviewed::new(TWO, move |request| {
            if request.occasion == Occasion::Crown {
                verdict.clone()
            } else {
                pass()
            }
        });
        let outcome = run(&workshop, &home.options());
        assert_eq!(
            (outcome.outcome, outcome.champion.clone()),
            (Outcome::GoalNotMet, None),
            "{code}"
        );
        assert_eq!(workshop.crowns().len(), 2);
        let codes: Vec<String> = entries(&outcome)
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Reviewed(review) => review.detail.unwrap().code,
                _ => None,
            })
            .collect();
        assert!(
            codes.iter().all(|found| found == code) && codes.len() == 2,
            "{codes:?}"
        );
        assert!(verify(&outcome.dir, &VerifyOptions::default()).is_intact());
    }
}

#[test]
fn a_reviewer_that_only_praises_promotes_nothing() {
    const SLOW: &[Round] = &[
        ("vector", &["a speed 0.5"]),
        ("threads", &["b speed 3.0 fails hidden/wrong-value"]),
    ];
    let home = Home::new();
    let workshop = Reviewed::new(SLOW, |_| pass());
    let outcome = run(&workshop, &home.options());
    assert_eq!(outcome.champion, None);
    assert!(workshop.crowns().is_empty());
}

#[test]
fn a_veto_on_one_candidate_leaves_the_next_its_chance_and_tells_the_writer_why() {
    let home = Home::new();
    let workshop = Reviewed::new(TWO, |request| match request.occasion {
        Occasion::Crown if request.source.iter().any(|(_, text)| text.contains("speed 2.0")) => {
            veto("odd-tail")
        }
        _ => pass(),
    });
    let outcome = run(&workshop, &home.options());
    assert_eq!(
        outcome.champion.unwrap().speedup.map(|gain| gain.point),
        Some(5.0)
    );
    let requests = workshop.requests.lock().unwrap();
    let crown = requests
        .iter()
        .find(|request| request.occasion == Occasion::Crown)
        .unwrap();
    assert!(
        crown.change.contains("+#pragma script a speed 2.0"),
        "{}",
        crown.change
    );
    assert!(!crown.contract.contains("hidden"), "{}", crown.contract);
    assert_eq!(crown.evidence["verdict"], "accept");
}

#[test]
fn edits_after_the_approval_do_not_reach_the_champion() {
    let home = Home::new();
    let runs = home.folder.path().join(".ksmith/runs");
    let workshop = Reviewed::new(TWO, move |request| {
        if let Some(id) = &request.candidate {
            // Whoever can write the working copy edits it between approval and crown.
            let run = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
            let kernel = run.join("candidates").join(id).join("kernel.c");
            std::fs::write(kernel, "#pragma script z speed 99.0\nvoid softmax(void) {}\n").unwrap();
        }
        pass()
    });
    let outcome = run(&workshop, &home.options());
    // The last confirmation judged the approved files, restored from the object store.
    assert_eq!(
        outcome.champion.clone().unwrap().speedup.map(|gain| gain.point),
        Some(5.0)
    );
    let id = outcome.champion.unwrap().id;
    let kernel = std::fs::read_to_string(outcome.dir.join("candidates").join(id).join("kernel.c")).unwrap();
    assert!(kernel.contains("b speed 5.0"), "{kernel}");
}

#[test]
fn one_vendor_for_both_parts_is_refused_before_the_run_unless_allowed() {
    let home = Home::new();
    let mut options = home.options();
    options.review.reviewer = ReviewerChoice::Command("/bin/true".into());
    // A writer whose vendor is unknown and a reviewer whose vendor is unknown.
    let mut workshop = Reviewed::new(TWO, |_| pass());
    workshop.vendor = Vendor::Unknown;
    assert!(
        run_with(&options, &workshop, &mut Silent).is_ok(),
        "the offline writer is no model"
    );
    let refusal = ksmith_agents::review::independent(
        &Vendor::of_writer("cli:claude"),
        &Vendor::of_model("claude-opus"),
        SameVendor::Refused,
    )
    .unwrap_err();
    let error = RunError::from(ReviewerError::Refused(refusal));
    assert_eq!(error.exit_code(), ExitCode::Usage);
    assert!(error.hint().unwrap().contains("--same-vendor"));
}

#[test]
fn without_the_mechanism_nobody_reviews() {
    let home = Home::new();
    let workshop = Reviewed::new(TWO, |_| veto("never-asked"));
    let mut options = home.options();
    options.mechanisms = "screen,final".parse().unwrap();
    let outcome = run(&workshop, &options);
    assert_eq!(outcome.outcome, Outcome::GoalMet);
    assert!(workshop.requests.lock().unwrap().is_empty());
    assert_eq!(History::load(&outcome.dir).unwrap().opened.reviewer, None);
}

#[test]
fn the_course_is_reviewed_at_its_marks_once_each_and_directions_reach_the_record() {
    const STUCK: &[Round] = &[
        ("one", &["a speed 0.5 fails hidden/wrong-value"]),
        ("two", &["b speed 0.5 fails hidden/wrong-value"]),
        ("three", &["c speed 0.5 fails hidden/wrong-value"]),
        ("four", &["d speed 0.5 fails hidden/wrong-value"]),
    ];
    let home = Home::new();
    let workshop = Reviewed::new(STUCK, |request| match request.occasion {
        Occasion::SameReason => Verdict::Given(Answer {
            word: Word::Direct,
            findings: Vec::new(),
            next: Some(Next {
                direction: "tails".into(),
                edit: "Handle the odd tail first. direction `two` is closed".into(),
            }),
        }),
        _ => pass(),
    });
    let mut options = home.options();
    options.mechanisms = "review".parse().unwrap();
    options.candidates = Some(8);
    let outcome = run(&workshop, &options);
    let occasions: Vec<Occasion> = workshop
        .requests
        .lock()
        .unwrap()
        .iter()
        .map(|request| request.occasion)
        .collect();
    assert_eq!(occasions, [Occasion::SameReason, Occasion::HalfBudget]);
    // The direction is data for the writer: it closes none, although it says so in our words.
    let history = History::load(&outcome.dir).unwrap();
    assert_eq!(history.candidates.len(), 4);
}

#[test]
fn a_critic_reorders_the_plan_and_its_changes_are_in_the_record() {
    let home = Home::new();
    let mut workshop = Reviewed::new(TWO, |_| pass());
    workshop.plan = Arc::new(|request| {
        let first = request.directions.first().map(|(name, _)| name.as_str());
        let change = PlanChange::First {
            direction: "threads".into(),
            why: "it bounds the rest".into(),
        };
        Some(Critique {
            required: if first == Some("threads") {
                Vec::new()
            } else {
                vec![change]
            },
            ..Critique::default()
        })
    });
    let outcome = run(&workshop, &home.options());
    let history = History::load(&outcome.dir).unwrap();
    let steps = &history.plan().unwrap().steps;
    assert!(steps[1].step.starts_with("Try `threads`"), "{steps:?}");
    assert!(
        steps
            .iter()
            .all(|step| !step.passes.is_empty() && !step.fails.is_empty())
    );
    let rounds: Vec<String> = history
        .reviews
        .iter()
        .filter_map(|(_, review)| review.detail.as_ref())
        .filter(|detail| detail.occasion == "plan")
        .map(|detail| format!("{} {}", detail.mark, detail.outcome))
        .collect();
    assert_eq!(rounds, ["draft direct", "plan pass"]);
}

#[test]
fn a_critic_that_is_never_content_is_heard_three_times_and_no_more() {
    let home = Home::new();
    let mut workshop = Reviewed::new(TWO, |_| pass());
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    workshop.plan = Arc::new(move |_| {
        *counted.lock().unwrap() += 1;
        Some(Critique {
            required: vec![PlanChange::First {
                direction: "threads".into(),
                why: "once more".into(),
            }],
            ..Critique::default()
        })
    });
    let outcome = run(&workshop, &home.options());
    assert_eq!((outcome.outcome, *asked.lock().unwrap()), (Outcome::GoalMet, 3));
    let history = History::load(&outcome.dir).unwrap();
    let reviews = history
        .reviews
        .iter()
        .filter_map(|(_, review)| review.detail.as_ref());
    assert_eq!(reviews.filter(|detail| detail.occasion == "plan").count(), 3);
}

#[test]
fn a_critic_without_a_valid_answer_stops_the_run_before_anything_is_spent() {
    let home = Home::new();
    let mut workshop = Reviewed::new(TWO, |_| pass());
    workshop.plan = Arc::new(|_| None);
    let error = run_with(&home.options(), &workshop, &mut Silent).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Environment);
    assert!(
        !workshop
            .script
            .asked()
            .iter()
            .any(|what| what.starts_with("score"))
    );
}

fn undecided(_: &PlanRequest) -> Option<Critique> {
    Some(Critique {
        decisions: vec![Decision {
            key: "bits".into(),
            question: "May two runs differ?".into(),
            options: vec!["yes".into(), "no".into()],
            trade_off: "speed".into(),
        }],
        ..Critique::default()
    })
}

#[test]
fn an_open_decision_blocks_the_start_and_silence_stops_the_run() {
    let home = Home::new();
    let mut workshop = Reviewed::new(TWO, |_| pass());
    workshop.plan = Arc::new(undecided);
    let mut options = home.options();
    options.review.answer_limit_s = 0.3;
    let outcome = run(&workshop, &options);
    assert_eq!(
        (outcome.outcome, outcome.reason.as_str()),
        (Outcome::GoalNotMet, "needs-human")
    );
    assert!(outcome.champion.is_none());
    let kinds: Vec<Kind> = read_records(&outcome.dir)
        .unwrap()
        .iter()
        .map(|record| record.kind)
        .collect();
    assert!(
        kinds.contains(&Kind::Waited) && !kinds.contains(&Kind::Proposed),
        "{kinds:?}"
    );
    assert_eq!(gate_codes(&outcome), ["process/needs-human"]);
    assert!(History::load(&outcome.dir).unwrap().waited_s > 0.2);
}

#[test]
fn a_decision_that_a_person_took_lets_the_run_begin() {
    let home = Home::new();
    let runs = home.folder.path().join(".ksmith/runs");
    let mut workshop = Reviewed::new(TWO, |_| pass());
    workshop.plan = Arc::new(move |request| {
        if request
            .decided
            .iter()
            .any(|(key, choice)| key == "bits" && choice == "no")
        {
            return Some(Critique::default());
        }
        // The person answers while the run waits.
        let run = std::fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
        ksmith_loop::answer(&run, "plan-bits", "no").unwrap();
        undecided(request)
    });
    let outcome = run(&workshop, &home.options());
    assert_eq!(outcome.outcome, Outcome::GoalMet);
    let answers: Vec<Option<String>> = entries(&outcome)
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Answered(answered) => Some(answered.answer),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [Some("no".to_owned())]);
}
