//! What the record costs: an append (synced), a stored blob, the check of a long ledger.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;

use divan::Bencher;
use ksmith_ledger::{LEDGER_FILE, Ledger, Note, ObjectStore, VerifyOptions, verify};

fn main() {
    divan::main();
}

fn note(number: u64) -> Note {
    Note {
        text: format!("remark {number} of about the length that remarks have"),
        data: serde_json::json!({ "n": number }),
    }
}

fn started(run_dir: &std::path::Path) -> Ledger {
    let mut ledger = Ledger::create(run_dir).unwrap();
    let opened = support::opened(ledger.objects(), "bench");
    ledger.append(opened).unwrap();
    ledger
}

#[divan::bench(sample_count = 50, sample_size = 1)]
fn append_synced(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = started(&folder.path().join("bench"));
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        ledger.append(note(number)).unwrap()
    });
}

#[divan::bench(sample_count = 50, sample_size = 1)]
fn put_64_kib_blob_synced(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let objects = ObjectStore::new(folder.path());
    let mut number = 0_u64;
    bencher.bench_local(|| {
        number += 1;
        objects.put(&number.to_le_bytes().repeat(8192)).unwrap()
    });
}

/// Ten thousand records as a run writes them: five verdicts with all gates in each hundred, the rest short.
fn long_ledger(run_dir: &std::path::Path) {
    // Written in memory by the documented rule: ten thousand syncs would take minutes.
    let mut ledger = started(run_dir);
    let proposal = support::proposed(
        ledger.objects(),
        "c0001",
        ksmith_ledger::Role::Candidate,
        &[],
        "why",
    );
    ledger.append(proposal.clone()).unwrap();
    support::judge(
        &mut ledger,
        &proposal,
        ksmith_ledger::Decision::Reject,
        "hidden/mismatch",
        "wrong",
        None,
    );
    let path = run_dir.join(LEDGER_FILE);
    let mut text = fs::read_to_string(&path).unwrap();
    let short = serde_json::to_value(note(1)).unwrap();
    let verdict = serde_json::to_value(ksmith_ledger::Decided {
        candidate: "c0001".into(),
        verdict_digest: ksmith_task::Digest::of(b""),
        champion: None,
        reason: "as before".into(),
        verdict: support::verdict(
            proposal.digest,
            ksmith_ledger::Decision::Accept,
            "accept/decided",
            support::passed(),
        ),
    })
    .unwrap();
    let mut prev = ledger.head();
    for seq in ledger.records()..10_000 {
        let (kind, body) = if seq % 20 == 0 {
            ("decided", &verdict)
        } else {
            ("note", &short)
        };
        let fields = format!(
            r#"{{"v":1,"seq":{seq},"time":"2026-08-01T12:00:00.000Z","kind":"{kind}","body":{},"prev":"{prev}""#,
            ksmith_ledger::canonical(body)
        );
        prev = ksmith_task::Digest::of(format!("{fields}}}").as_bytes());
        text.push_str(&format!("{fields},\"hash\":\"{prev}\"}}\n"));
    }
    fs::write(path, text).unwrap();
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn verify_10_000_records(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join("bench");
    long_ledger(&run_dir);
    bencher.bench_local(|| {
        let report = verify(&run_dir, &VerifyOptions::default());
        assert!(
            report.is_intact() && report.records == 10_000,
            "{:?}",
            report.damage
        );
    });
}
