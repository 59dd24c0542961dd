//! A whole run, made up, written through the real writer with a scripted clock.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "shared by the test files of two crates")]
#![allow(clippy::unwrap_used, reason = "a sample that cannot be made fails its test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ksmith_ledger::*;
use ksmith_task::Digest;
use serde_json::json;

/// Counts a quarter of a second per reading.
#[derive(Default)]
pub struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> String {
        let tick = self.0.fetch_add(1, Ordering::Relaxed);
        let (second, milli) = (tick / 4, tick % 4 * 250);
        format!("2026-08-01T12:{:02}:{:02}.{milli:03}Z", second / 60, second % 60)
    }
}

pub const RUN: &str = "0801-120000-softmax";

pub const HOSTILE: &str =
    "</script><script>alert(1)</script> \u{1b}[31mred\u{1b}[0m \u{9b}2J =cmd|' /C calc'!A0";

pub fn speedup(lower: f64, point: f64, upper: f64) -> Option<Speedup> {
    Some(Speedup { point, lower, upper })
}

pub fn gate(name: Gate, result: GateOutcome, code: Option<&str>) -> GateResult {
    GateResult {
        name,
        result,
        code: code.map(Into::into),
        ms: 12.5,
        evidence: json!({ "cases": 3 }),
    }
}

pub fn passed() -> Vec<GateResult> {
    Gate::ALL
        .into_iter()
        .map(|name| gate(name, GateOutcome::Pass, None))
        .collect()
}

pub fn verdict(candidate: Digest, decision: Decision, code: &str, gates: Vec<GateResult>) -> Verdict {
    let fast = decision == Decision::Accept;
    Verdict {
        verdict: decision,
        code: code.into(),
        gate: gates
            .iter()
            .find(|gate| gate.result == GateOutcome::Fail)
            .map(|gate| gate.name),
        tier: "native".into(),
        isolation: "box".into(),
        scope: Scope::Cpu,
        scope_note: Scope::Cpu.sentence().into(),
        speedup: if fast { speedup(2.1, 2.25, 2.4) } else { None },
        over_baseline: if fast { speedup(7.9, 8.2, 8.5) } else { None },
        over_flag_control: if fast { speedup(2.1, 2.25, 2.4) } else { None },
        gates,
        task: Digest::of(b"task"),
        candidate,
        judge: Digest::of(b"judge"),
        device: Digest::of(b"device"),
    }
}

pub fn opened(objects: &ObjectStore, run: &str) -> RunOpened {
    let baseline = objects
        .put_files([
            ("candidate.toml", &b"schema = 1\n"[..]),
            ("kernel.c", b"void softmax(void) {\n  /* slow */\n}\n"),
        ])
        .unwrap();
    RunOpened {
        run: run.into(),
        tool: "0.1.0".into(),
        command: vec!["ksmith".into(), "run".into(), "tasks/softmax".into()],
        task: "softmax".into(),
        instance: "softmax[T=f32]".into(),
        scope: Scope::Cpu,
        scope_note: Scope::Cpu.sentence().into(),
        contract: objects.put(b"schema = 1\nname = \"softmax\"\n").unwrap(),
        locks: ["baseline", "judge", "reference", "task"]
            .map(|name| (name.to_owned(), Digest::of(name.as_bytes())))
            .into(),
        lock_file: Some(objects.put(b"{\"locked\":true}\n").unwrap()),
        baseline,
        machine: json!({ "cpu": "Example CPU", "cpus": 2, "isa": ["avx2"] }),
        device: Digest::of(b"device"),
        device_name: "Example CPU, 2 CPUs".into(),
        compiler: "gcc 14.2.0".into(),
        isolation: "box".into(),
        unsandboxed: false,
        tier: "native".into(),
        protocol: "course".into(),
        goal: 0.9,
        mechanisms: BTreeMap::from([("draft".into(), true), ("lore".into(), false)]),
        writer: "offline".into(),
        reviewer: None,
        budget: BudgetLimits {
            wall_s: Some(1200.0),
            candidates: Some(60),
            ..BudgetLimits::default()
        },
        search_seed: Some(7),
        seeds: vec![SeedCommitment::new("screen", &[1; 32])],
        options: json!({}),
    }
}

pub fn proposed(objects: &ObjectStore, id: &str, role: Role, parents: &[&str], hypothesis: &str) -> Proposed {
    let source = format!("void softmax(void) {{\n  /* {id} */\n  go();\n}}\n");
    let tree = objects
        .put_files([
            ("candidate.toml", &b"schema = 1\n"[..]),
            ("kernel.c", source.as_bytes()),
        ])
        .unwrap();
    Proposed {
        candidate: id.into(),
        role,
        round: 1,
        parents: parents.iter().map(|parent| (*parent).to_owned()).collect(),
        writer: "offline".into(),
        family: "online-softmax".into(),
        direction: "one pass".into(),
        hypothesis: hypothesis.into(),
        predicted: Some(1.8),
        tree,
        digest: Digest::of(id.as_bytes()),
        consulted: vec![],
        detail: json!({}),
    }
}

pub fn benched(id: &str, stage: BenchStage, over_baseline: Option<Speedup>) -> Benched {
    let time = |arm: Arm, median_us: f64| ArmTime {
        workload: "host".into(),
        arm,
        name: None,
        clock: "wall".into(),
        lane: "challenge".into(),
        calls: 300,
        median_us,
        mean_us: median_us * 1.02,
        std_us: median_us * 0.03,
        min_us: median_us * 0.97,
        p10_us: median_us * 0.98,
        p90_us: median_us * 1.06,
    };
    let point = over_baseline.map_or(1.0, |speedup| speedup.point);
    Benched {
        candidate: id.into(),
        stage,
        champion: None,
        pairs: 64,
        sets: 6,
        over_champion: over_baseline,
        over_baseline,
        over_flag_control: over_baseline.map(|s| Speedup {
            point: s.point / 3.0,
            lower: s.lower / 3.0,
            upper: s.upper / 3.0,
        }),
        control: speedup(0.995, 1.001, 1.006),
        confidence: 0.99,
        workloads: vec![WorkloadGain {
            workload: "host".into(),
            weight: 1.0,
            over_champion: over_baseline,
            over_baseline,
            over_flag_control: None,
        }],
        times: vec![
            time(Arm::Baseline, 820.0),
            time(Arm::Candidate, 820.0 / point),
            time(Arm::Control, 821.0),
        ],
        floor: vec![FloorLine {
            workload: "host".into(),
            bytes: 4_194_304.0,
            flops: 2_621_440.0,
            probe: "copy".into(),
            floor_us: 61.0,
            candidate_us: 820.0 / point,
        }],
        gates: vec![gate(Gate::Bench, GateOutcome::Pass, None)],
        code: None,
        samples: None,
        conditions: json!({ "load": 0.1 }),
        ms: 900.0,
    }
}

/// Decides on `id` and, when it is accepted, confirms and promotes it.
pub fn judge(
    ledger: &mut Ledger,
    proposal: &Proposed,
    decision: Decision,
    code: &str,
    reason: &str,
    previous: Option<&str>,
) {
    let id = &proposal.candidate;
    let gates = match decision {
        Decision::Accept => passed(),
        _ => {
            let name = Gate::ALL
                .into_iter()
                .find(|gate| code.starts_with(gate.name()))
                .unwrap();
            vec![
                gate(Gate::Policy, GateOutcome::Pass, None),
                gate(Gate::Compile, GateOutcome::Pass, None),
                gate(name, GateOutcome::Fail, Some(code)),
            ]
        }
    };
    let verdict = verdict(proposal.digest, decision, code, gates);
    ledger
        .append(Decided {
            candidate: id.clone(),
            verdict_digest: verdict.digest(),
            champion: previous.map(Into::into),
            reason: reason.into(),
            verdict,
        })
        .unwrap();
    if decision != Decision::Accept {
        return;
    }
    let mut verdict = self::verdict(proposal.digest, decision, "accept/confirmed", passed());
    if proposal.role == Role::FlagControl {
        verdict.over_flag_control = None;
        verdict.over_baseline = speedup(3.4, 3.5, 3.6);
    }
    ledger
        .append(Committed {
            seed: SeedCommitment::new(&format!("confirm-{id}"), id.as_bytes()),
        })
        .unwrap();
    ledger
        .append(benched(id, BenchStage::Confirmation, verdict.over_baseline))
        .unwrap();
    ledger
        .append(Confirmed {
            candidate: id.clone(),
            verdict_digest: verdict.digest(),
            attempt: 1,
            alpha: 0.005,
            reason: "Confirmed.".into(),
            verdict: verdict.clone(),
        })
        .unwrap();
    ledger
        .append(Promoted {
            candidate: id.clone(),
            previous: previous.map(Into::into),
            verdict_digest: verdict.digest(),
            tree: proposal.tree,
        })
        .unwrap();
}

/// Writes the run up to, but without, its closing record.
pub fn unclosed(run_dir: &Path) -> Ledger {
    let mut ledger = Ledger::create_with_clock(run_dir, Box::new(Ticks::default())).unwrap();
    let objects = ledger.objects().clone();
    let run = run_dir.file_name().unwrap().to_str().unwrap();
    ledger.append(opened(&objects, run)).unwrap();
    fs::write(run_dir.join("task.lock.json"), "{\"locked\":true}\n").unwrap();
    ledger
        .append(Audited {
            passed: true,
            findings: vec![],
            detail: json!({}),
            ms: 100.0,
        })
        .unwrap();
    let text = objects.put(b"# Draft\n").unwrap();
    ledger
        .append(Draft {
            text,
            accepted: true,
            findings: vec![],
        })
        .unwrap();
    let step = PlanStep {
        step: "one pass".into(),
        criterion: "lower bound above 1.01".into(),
        passes: String::new(),
        fails: String::new(),
    };
    let text = objects.put(b"# Plan\n").unwrap();
    ledger
        .append(Plan {
            text,
            accepted: true,
            findings: vec![],
            steps: vec![step],
        })
        .unwrap();
    let log = objects.put(HOSTILE.as_bytes()).unwrap();
    let mut previous = None;
    let cases = [
        (
            "c0001",
            Role::FlagControl,
            Decision::Accept,
            "accept/decided",
            "The same source under better flags.",
        ),
        (
            "c0002",
            Role::Candidate,
            Decision::Reject,
            "hidden/mismatch",
            "Wrong on a hidden case.",
        ),
        (
            "c0003",
            Role::Candidate,
            Decision::Accept,
            "accept/decided",
            "Faster, confirmed.",
        ),
        (
            "c0004",
            Role::Candidate,
            Decision::Reject,
            "gain/below-floor",
            "No faster than the champion.",
        ),
        (
            "c0005",
            Role::Candidate,
            Decision::Reject,
            "compile/refused",
            HOSTILE,
        ),
    ];
    for (id, role, decision, code, reason) in cases {
        let hypothesis = if id == "c0005" {
            HOSTILE
        } else {
            "One pass over the row saves a read."
        };
        let parents: Vec<&str> = previous.into_iter().collect();
        let proposal = proposed(&objects, id, role, &parents, hypothesis);
        ledger.append(proposal.clone()).unwrap();
        ledger
            .append(Checked {
                candidate: id.into(),
                gates: vec![gate(Gate::Compile, GateOutcome::Pass, None)],
                code: None,
                command: vec!["gcc".into(), "-O3".into()],
                log: Some(log),
                disassembly: Some(objects.put(format!("vaddps\n{id}\n").as_bytes()).unwrap()),
                findings: vec![HOSTILE.into()],
                ms: 80.0,
            })
            .unwrap();
        if code.starts_with("gain") || decision == Decision::Accept {
            ledger
                .append(Tested {
                    candidate: id.into(),
                    gates: vec![gate(Gate::Hidden, GateOutcome::Pass, None)],
                    code: None,
                    ms: 60.0,
                })
                .unwrap();
            let gain = if decision == Decision::Accept {
                speedup(7.8, 8.1, 8.6)
            } else {
                speedup(7.6, 7.9, 8.2)
            };
            ledger.append(benched(id, BenchStage::Decision, gain)).unwrap();
        }
        judge(&mut ledger, &proposal, decision, code, reason, previous);
        if decision == Decision::Accept {
            previous = Some(if id == "c0001" { "c0001" } else { "c0003" });
        }
    }
    ledger
        .append(BudgetSpent {
            wall_s: 30.0,
            candidates: 5,
            screened: 40,
            ..BudgetSpent::default()
        })
        .unwrap();
    ledger
}

/// Closes the run, writes views and certificate; gives the head and the key.
pub fn close(ledger: Ledger, key: &KeyPair) -> Digest {
    close_with(ledger, key, Some("c0003"), 0)
}

/// As [`close`], with another champion and candidates without a statement.
pub fn close_with(mut ledger: Ledger, key: &KeyPair, champion: Option<&str>, unstated: u64) -> Digest {
    let closed = Closed {
        outcome: if champion.is_some() {
            Outcome::GoalMet
        } else {
            Outcome::GoalNotMet
        },
        reason: "budget: candidates".into(),
        champion: champion.map(Into::into),
        candidates: 5,
        screened: 40,
        wall_s: 30.0,
        records: ledger.records(),
        head: ledger.head(),
        seeds: vec![
            RevealedSeed::new("screen", &[1; 32]),
            RevealedSeed::new("confirm-c0001", b"c0001"),
            RevealedSeed::new("confirm-c0003", b"c0003"),
        ],
        unstated,
        unmeasured: 0,
    };
    let head = ledger.append(closed).unwrap().hash;
    let run_dir = ledger.run_dir();
    views::write(run_dir).unwrap();
    Certificate::of(&History::load(run_dir).unwrap())
        .unwrap()
        .sign(key)
        .write(run_dir)
        .unwrap();
    head
}

/// A key that is the same in every test.
pub fn key(folder: &Path) -> KeyPair {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join("signing.key");
    fs::write(&path, "07".repeat(32)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    KeyPair::open(&path).unwrap()
}

/// A closed run in a folder of its own.
pub struct Sample {
    pub folder: tempfile::TempDir,
    pub run_dir: PathBuf,
    pub head: Digest,
    pub key: KeyPair,
}

pub fn sample() -> Sample {
    // Written once per test binary: each record is synced to disk, which takes its time.
    static WRITTEN: OnceLock<(tempfile::TempDir, Digest)> = OnceLock::new();
    let (written, head) = WRITTEN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let key = key(folder.path());
        let head = close(unclosed(&folder.path().join(RUN)), &key);
        (folder, head)
    });
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(RUN);
    copy(&written.path().join(RUN), &run_dir);
    let key = key(folder.path());
    Sample {
        folder,
        run_dir,
        head: *head,
        key,
    }
}

/// Copies a run folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// Every file below a folder, relative, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}
