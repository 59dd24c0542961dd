//! How runs may end beside "faster and confirmed": a noisy or refusing last confirmation, no statement at all, a
//! certificate far from its run.

use std::fs;
use std::path::PathBuf;

use ksmith_ledger::verify::verify_certificate;
use ksmith_ledger::*;
use serde_json::json;

use crate::support;

struct Open {
    folder: tempfile::TempDir,
    run_dir: PathBuf,
    key: KeyPair,
    ledger: Ledger,
}

fn open() -> Open {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(support::RUN);
    Open {
        key: support::key(folder.path()),
        ledger: support::unclosed(&run_dir),
        run_dir,
        folder,
    }
}

impl Open {
    /// A last confirmation of `id` that ends with `decision`.
    fn confirm(
        &mut self,
        id: &str,
        decision: Decision,
        code: &str,
        over_baseline: Option<Speedup>,
    ) -> Verdict {
        let history = History::load(&self.run_dir).unwrap();
        let digest = history.candidate(id).unwrap().proposed.digest;
        let gates = match decision {
            Decision::Error => vec![support::gate(Gate::Bench, GateOutcome::Error, Some(code))],
            _ => support::passed(),
        };
        let mut verdict = support::verdict(digest, decision, code, gates.clone());
        verdict.over_baseline = over_baseline;
        let mut benched = support::benched(id, BenchStage::Confirmation, over_baseline);
        benched.gates = gates;
        self.ledger.append(benched).unwrap();
        self.ledger
            .append(Confirmed {
                candidate: id.into(),
                verdict_digest: verdict.digest(),
                attempt: 9,
                alpha: 0.001,
                reason: format!("last confirmation: {code}"),
                verdict: verdict.clone(),
            })
            .unwrap();
        verdict
    }

    fn demote(&mut self, id: &str, champion: Option<&str>, verdict: &Verdict) {
        self.ledger
            .append(Demoted {
                candidate: id.into(),
                champion: champion.map(Into::into),
                verdict_digest: verdict.digest(),
                reason: format!("its last confirmation refused it: {}", verdict.code),
            })
            .unwrap();
    }

    fn close(
        self,
        champion: Option<&str>,
        unstated: u64,
    ) -> (tempfile::TempDir, PathBuf, Certificate, Report) {
        support::close_with(self.ledger, &self.key, champion, unstated);
        let certificate = SignedCertificate::read(&self.run_dir)
            .unwrap()
            .unwrap()
            .certificate;
        let report = verify(
            &self.run_dir,
            &VerifyOptions {
                public_key: Some(self.key.public()),
                ..VerifyOptions::default()
            },
        );
        (self.folder, self.run_dir, certificate, report)
    }
}

#[test]
fn a_noisy_last_confirmation_takes_nothing_back_from_the_champion() {
    let mut run = open();
    run.confirm("c0003", Decision::Error, "bench/noisy", None);
    let (_folder, run_dir, certificate, report) = run.close(Some("c0003"), 0);
    assert!(report.is_intact(), "{}", report.sentence());
    let history = History::load(&run_dir).unwrap();
    let champion = history.champion().unwrap();
    assert_eq!(
        (champion.status(), champion.code()),
        (Status::Champion, Some("accept/confirmed"))
    );
    let wanted = support::speedup(7.9, 8.2, 8.5);
    assert_eq!(champion.over_baseline(), wanted);
    let gates = &champion.bench().unwrap().gates;
    assert!(
        gates.iter().all(|gate| gate.result != GateOutcome::Error),
        "not the noisy measurement"
    );
    assert_eq!(certificate.champion.unwrap().over_baseline, wanted);
}

#[test]
fn certificate_and_tables_quote_the_same_confirmation_the_last_accepted_one() {
    let mut run = open();
    let last = support::speedup(7.0, 7.1, 7.2);
    let verdict = run.confirm("c0003", Decision::Accept, "accept/confirmed", last);
    let (_folder, run_dir, certificate, report) = run.close(Some("c0003"), 0);
    assert!(report.is_intact(), "{}", report.sentence());
    let history = History::load(&run_dir).unwrap();
    let certified = certificate.champion.clone().unwrap();
    assert_eq!(certified.over_baseline, last);
    assert_eq!(
        certified.over_baseline,
        history.champion().unwrap().over_baseline()
    );
    assert_eq!(certified.verdict, verdict.digest());
    assert!(
        certificate.claim.contains("at least 7.00 times as fast"),
        "{}",
        certificate.claim
    );
}

#[test]
fn a_refused_champion_falls_and_the_one_before_it_stands_again() {
    let mut run = open();
    let refused = run.confirm("c0003", Decision::Reject, "hidden/wrong-value", None);
    run.demote("c0003", Some("c0001"), &refused);
    let (_folder, run_dir, certificate, report) = run.close(Some("c0001"), 0);
    assert!(report.is_intact(), "{}", report.sentence());
    let history = History::load(&run_dir).unwrap();
    assert_eq!(history.champion.as_deref(), Some("c0001"));
    let fallen = history.candidate("c0003").unwrap();
    assert_eq!(
        (fallen.status(), fallen.code()),
        (Status::Demoted, Some("hidden/wrong-value"))
    );
    assert!(fallen.reason().unwrap().contains("refused it"));
    assert_eq!(history.candidate("c0001").unwrap().status(), Status::Champion);
    assert_eq!(certificate.champion.unwrap().id, "c0001");
}

#[test]
fn a_demotion_that_rests_on_no_refusal_is_found() {
    let mut run = open();
    let accepted = run.confirm(
        "c0003",
        Decision::Accept,
        "accept/confirmed",
        support::speedup(7.0, 7.1, 7.2),
    );
    run.demote("c0003", None, &accepted);
    let (.., report) = run.close(None, 0);
    let damage = report.damage.unwrap();
    assert_eq!(damage.cause, Cause::CertificateMismatch);
    assert!(
        damage.detail.contains("no verdict that refused"),
        "{}",
        damage.detail
    );
}

#[test]
fn a_candidate_that_stayed_in_screening_is_not_in_flight_for_ever() {
    let mut run = open();
    let objects = run.ledger.objects().clone();
    let proposal = support::proposed(&objects, "c0006", Role::Candidate, &[], "screened only");
    let digest = proposal.digest;
    run.ledger.append(proposal).unwrap();
    run.ledger
        .append(Screened {
            candidate: Some("c0006".into()),
            digest,
            configuration: "screened only".into(),
            kept: true,
            code: None,
            ratio: Some(1.02),
            ms: 5.0,
        })
        .unwrap();
    let history = History::load(&run.run_dir).unwrap();
    assert_eq!(history.candidate("c0006").unwrap().status(), Status::Screened);
}

/// A run of one noisy candidate and nothing else.
fn noisy(with_rejected: bool) -> (tempfile::TempDir, PathBuf, KeyPair, Ledger) {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join("noisy");
    let key = support::key(folder.path());
    let mut ledger = Ledger::create(&run_dir).unwrap();
    let objects = ledger.objects().clone();
    ledger.append(support::opened(&objects, "noisy")).unwrap();
    fs::write(run_dir.join("task.lock.json"), "{\"locked\":true}\n").unwrap();
    let mut codes = vec![("c0001", Decision::Error, "bench/noisy")];
    if with_rejected {
        codes.push(("c0002", Decision::Reject, "gain/below-floor"));
    }
    for (id, decision, code) in codes {
        let proposal = support::proposed(&objects, id, Role::Candidate, &[], "an idea");
        let digest = proposal.digest;
        ledger.append(proposal).unwrap();
        let gates = vec![support::gate(Gate::Bench, GateOutcome::Error, Some(code))];
        let mut verdict = support::verdict(digest, decision, code, gates);
        if decision == Decision::Reject {
            verdict.speedup = support::speedup(0.9, 0.95, 1.0);
        }
        ledger
            .append(Decided {
                candidate: id.into(),
                verdict_digest: verdict.digest(),
                champion: None,
                reason: code.into(),
                verdict,
            })
            .unwrap();
    }
    (folder, run_dir, key, ledger)
}

#[test]
fn a_run_that_could_not_measure_says_so_and_never_that_the_baseline_stands() {
    for (with_rejected, allows_none) in [(false, true), (true, false)] {
        let (_folder, run_dir, key, mut ledger) = noisy(with_rejected);
        assert!(
            History::load(&run_dir)
                .unwrap()
                .without_champion()
                .starts_with("no statement was possible on 1")
        );
        ledger
            .append(Closed {
                outcome: Outcome::GoalNotMet,
                reason: "wall".into(),
                champion: None,
                candidates: 1,
                screened: 0,
                wall_s: 1.0,
                records: ledger.records(),
                head: ledger.head(),
                seeds: vec![RevealedSeed::new("screen", &[1; 32])],
                unstated: 1,
                unmeasured: 0,
            })
            .unwrap();
        let history = History::load(&run_dir).unwrap();
        assert_eq!(
            (history.unstated(), history.allows_no_statement()),
            (1, allows_none)
        );
        let certificate = Certificate::of(&history).unwrap();
        assert!(
            certificate
                .claim
                .contains("no statement was possible on 1 candidate")
        );
        assert!(
            !certificate.claim.contains("baseline stands"),
            "{}",
            certificate.claim
        );
        certificate.sign(&key).write(&run_dir).unwrap();
        let report = verify(&run_dir, &VerifyOptions::default());
        assert!(report.is_intact(), "{}", report.sentence());
    }
}

#[test]
fn a_wrong_head_is_told_in_full() {
    let sample = support::sample();
    let wanted = ksmith_task::Digest::of(b"another head");
    let report = verify(
        &sample.run_dir,
        &VerifyOptions {
            head: Some(wanted.into()),
            ..VerifyOptions::default()
        },
    );
    let detail = report.damage.unwrap().detail;
    assert!(
        detail.contains(&wanted.to_string()) && detail.contains(&sample.head.to_string()),
        "{detail}"
    );
}

#[test]
fn a_certificate_away_from_its_run_is_checked_for_what_it_holds() {
    let sample = support::sample();
    let copy = sample.folder.path().join("sent.json");
    let path = sample.run_dir.join(CERTIFICATE_FILE);
    fs::copy(&path, &copy).unwrap();
    let with = |head: Option<ksmith_task::Digest>, public_key| VerifyOptions {
        head: head.map(Into::into),
        public_key,
        run: None,
    };
    let found = verify_certificate(&copy, &with(Some(sample.head), Some(sample.key.public()))).unwrap();
    assert_eq!(
        found.anchors,
        Anchors {
            head: true,
            head_digits: None,
            public_key: true
        }
    );
    assert_eq!(found.certificate.run, support::RUN);
    let wrong = verify_certificate(&copy, &with(Some(ksmith_task::Digest::of(b"x")), None)).unwrap_err();
    assert_eq!(wrong.cause, Cause::HeadMismatch);
    let missing = verify_certificate(&sample.folder.path().join("none.json"), &with(None, None)).unwrap_err();
    assert_eq!(missing.cause, Cause::CertificateUnreadable);
    let text = fs::read_to_string(&copy).unwrap();
    fs::write(&copy, text.replace("at least 7.90", "at least 9.90")).unwrap();
    let forged = verify_certificate(&copy, &with(None, None)).unwrap_err();
    assert_eq!(forged.cause, Cause::BadSignature);
    // Whoever has a key can sign any sentence; it must still follow from the fields.
    let mut certificate = SignedCertificate::read(&sample.run_dir)
        .unwrap()
        .unwrap()
        .certificate;
    certificate.claim = certificate.claim.replace("at least 7.90", "at least 9.90");
    fs::write(&copy, certificate.sign(&sample.key).text().unwrap()).unwrap();
    let claims = verify_certificate(&copy, &with(None, None)).unwrap_err();
    assert_eq!(claims.cause, Cause::CertificateMismatch);
    assert_eq!(json!(claims)["place"]["file"], "sent.json");
}

#[test]
fn that_the_baseline_stands_is_said_only_where_something_was_measured_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join("run");
    let mut ledger = Ledger::create(&run_dir).unwrap();
    let objects = ledger.objects().clone();
    ledger.append(support::opened(&objects, "run")).unwrap();
    let words = || {
        let history = History::load(&run_dir).unwrap();
        (history.without_champion(), history.ending())
    };
    assert_eq!(words(), ("nothing was measured so far".to_owned(), "open"));
    ledger
        .append(Interrupted {
            reason: "interrupt".into(),
            torn: None,
        })
        .unwrap();
    assert_eq!(words(), ("nothing was measured so far".to_owned(), "interrupted"));
    for (id, code, speedup, said) in [
        (
            "c0001",
            "compile/error",
            None,
            "nothing was measured, since every",
        ),
        (
            "c0002",
            "gain/below-floor",
            support::speedup(0.9, 0.95, 1.0),
            "the baseline stands so far",
        ),
    ] {
        let proposal = support::proposed(&objects, id, Role::Candidate, &[], "an idea");
        let mut verdict = support::verdict(proposal.digest, Decision::Reject, code, Vec::new());
        verdict.speedup = speedup;
        ledger.append(proposal).unwrap();
        ledger
            .append(Decided {
                candidate: id.into(),
                verdict_digest: verdict.digest(),
                champion: None,
                reason: code.into(),
                verdict,
            })
            .unwrap();
        assert!(words().0.starts_with(said), "{}", words().0);
    }
}

#[test]
fn a_run_that_its_audit_refused_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join("run");
    let mut ledger = Ledger::create(&run_dir).unwrap();
    let objects = ledger.objects().clone();
    ledger.append(support::opened(&objects, "run")).unwrap();
    ledger
        .append(Audited {
            passed: false,
            findings: vec!["a candidate that writes nothing passes".into()],
            detail: serde_json::Value::Null,
            ms: 1.0,
        })
        .unwrap();
    let history = History::load(&run_dir).unwrap();
    assert_eq!(history.ending(), "refused by its audit");
    assert!(history.without_champion().contains("its own audit"));
}

#[test]
fn the_claim_of_a_run_without_a_measurement_says_that_nothing_was_measured() {
    let sample = support::sample();
    let mut certificate = SignedCertificate::read(&sample.run_dir)
        .unwrap()
        .unwrap()
        .certificate;
    certificate.champion = None;
    (certificate.candidates, certificate.unmeasured) = (2, 2);
    assert!(certificate.sentence().starts_with("Nothing was measured for"));
    certificate.unmeasured = 1;
    assert!(certificate.sentence().contains("the baseline stands after 2"));
    (certificate.candidates, certificate.screened) = (0, 0);
    assert!(certificate.sentence().starts_with("Nothing was measured for"));
}
