//! Judging on a real device: each gate catches a cheat and passes an honest kernel. Without a device one line says how
//! many checks were skipped.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at what it did not expect, and says what it skipped"
)]

use std::fs;
use std::path::Path;

use ksmith_box::Level;
use ksmith_judge::{Effort, Judge, JudgeError, JudgeOptions};
use ksmith_ledger::{Decision, GateOutcome, Verdict};
use ksmith_task::{Backend, Candidate, Task};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

const HEAD: &str = "extern \"C\" __global__ void scale_add(const float *x, const float *y, float *z, float a, long long n)\n";
const INDEX: &str = "long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;";
const PLAN: &str =
    "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n";

/// What is judged, and how it must end.
struct Check {
    name: &'static str,
    /// What stands before the kernel.
    before: &'static str,
    body: &'static str,
    plan: &'static str,
    /// Codes of which one must be given.
    codes: &'static [&'static str],
    /// Words that the evidence must hold.
    words: &'static [&'static str],
}

const HONEST: Check = Check {
    name: "honest",
    before: "",
    body: "if (i < n) z[i] = a * x[i] + y[i];",
    plan: PLAN,
    codes: &["gain/not-measured"],
    words: &[],
};

const CHECKS: &[Check] = &[
    Check {
        name: "a wrong formula",
        body: "if (i < n) z[i] = a * x[i] - y[i];",
        codes: &["smoke/wrong-value"],
        words: &["\"output\":\"z\""],
        ..HONEST
    },
    Check {
        name: "the last element is left out",
        body: "if (i < n - 1) z[i] = a * x[i] + y[i];",
        codes: &["smoke/unwritten"],
        ..HONEST
    },
    Check {
        name: "a write to an input",
        body: "if (i < n) { z[i] = a * x[i] + y[i]; ((float *)y)[i] = 0.0f; }",
        codes: &["smoke/input-write"],
        words: &["\"buffer\":\"y\""],
        ..HONEST
    },
    Check {
        name: "a write behind the output",
        body: "if (i < n) z[i] = a * x[i] + y[i]; if (i == 0) z[n + 64] = 1.0f;",
        codes: &["smoke/crash", "smoke/canary"],
        words: &["\"buffer\":\"z\"", "\"side\":\"after\""],
        ..HONEST
    },
    Check {
        name: "a read behind an input",
        body: "if (i < n) z[i] = a * x[i] + y[i] + 0.0f * (x[n + 64] == 1.0f);",
        codes: &["smoke/crash"],
        words: &["\"buffer\":\"x\"", "\"side\":\"after\"", "\"access\":\"read\""],
        ..HONEST
    },
    Check {
        name: "accumulation into what the output held",
        body: "if (i < n) z[i] = z[i] + a * x[i] + y[i];",
        codes: &["smoke/non-finite", "smoke/unwritten"],
        ..HONEST
    },
    Check {
        name: "an answer remembered by address",
        before: "__device__ float memo[1 << 20]; __device__ const void *seen[1 << 20];",
        body: "if (i < n) { if (seen[i] != x) { memo[i] = a * x[i] + y[i]; seen[i] = x; } z[i] = memo[i]; }",
        codes: &[
            "smoke/wrong-value",
            "dev/wrong-value",
            "hidden/wrong-value",
            "depends/stale",
            "depends/wrong-value",
        ],
        ..HONEST
    },
    Check {
        name: "every third call is skipped after some",
        before: "__device__ unsigned calls[1 << 20];",
        body: "if (i < n) { unsigned c = calls[i]++; if (c < 9 || c % 3) z[i] = a * x[i] + y[i]; }",
        codes: &[
            "hidden/unwritten",
            "probes/unwritten",
            "repeat/unwritten",
            "depends/unwritten",
            "hidden/non-finite",
            "probes/non-finite",
            "repeat/non-finite",
            "depends/non-finite",
        ],
        ..HONEST
    },
    Check {
        name: "half precision inside",
        before: "__device__ float coarse(float v) { return __uint_as_float(__float_as_uint(v) & 0xfffff000u); }",
        body: "if (i < n) z[i] = coarse(a * x[i]) + y[i];",
        codes: &["smoke/wrong-value", "precision/too-coarse"],
        ..HONEST
    },
    Check {
        name: "a loop without end",
        body: "volatile float v = 1.0f; while (v == v) v += a; if (i < n) z[i] = v;",
        codes: &["smoke/timeout"],
        ..HONEST
    },
    Check {
        name: "device printf",
        body: "if (i < n) z[i] = a * x[i] + y[i]; if (i == 1 << 30) printf(\"%d\", 1);",
        codes: &["static/forbidden-import"],
        ..HONEST
    },
    Check {
        name: "an empty grid",
        plan: "grid = [\"n - n\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", \"n\"]\n",
        codes: &["smoke/plan"],
        words: &["it must be from 1"],
        ..HONEST
    },
    Check {
        name: "an argument of the wrong size",
        plan: "grid = [\"ceil_div(n, 256)\"]\n  block = [256]\n  args = [\"x\", \"y\", \"z\", \"a\", { i32 = \"n\" }]\n",
        codes: &["smoke/plan"],
        words: &["4 bytes"],
        ..HONEST
    },
    Check {
        name: "a syntax error",
        body: "oops",
        codes: &["compile/error"],
        ..HONEST
    },
];

fn open(state: &Path, effort: Effort) -> Option<Judge> {
    let task = Task::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scale_add")).unwrap();
    let mut options = JudgeOptions::new(state).on(Backend::Cuda);
    options.least = Level::Limits;
    options.effort = effort;
    match Judge::open(&task.instances().remove(0), options) {
        Ok(judge) => Some(judge),
        Err(JudgeError::Unsupported(why)) => {
            println!("skipped: {} checks on a device ({why})", CHECKS.len() + 1);
            None
        }
        Err(error) => panic!("{error}: {error:?}"),
    }
}

fn score(judge: &mut Judge, check: &Check) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!(
        "schema = 1\nbackend = \"cuda\"\nsources = [\"kernel.cu\"]\n[[variant]]\n  [[variant.step]]\n  \
         kernel = \"scale_add\"\n  {}",
        check.plan
    );
    let source = format!("{}\n{HEAD}{{\n{INDEX}\n{}\n}}\n", check.before, check.body);
    fs::write(folder.path().join("candidate.toml"), manifest).unwrap();
    fs::write(folder.path().join("kernel.cu"), source).unwrap();
    judge.score(&Candidate::load(folder.path()).unwrap())
}

#[test]
fn cheats_are_caught_and_an_honest_kernel_passes_every_gate() {
    let state = tempfile::tempdir().unwrap();
    let Some(mut judge) = open(state.path(), Effort::Correctness) else {
        return;
    };
    let mut missed = Vec::new();
    for check in std::iter::once(&HONEST).chain(CHECKS).chain([&HONEST]) {
        let began = std::time::Instant::now();
        let verdict = score(&mut judge, check);
        let evidence = verdict.gates.last().unwrap().evidence.to_string();
        let right = check.codes.contains(&verdict.code.as_str())
            && check.words.iter().all(|word| evidence.contains(word));
        println!(
            "{:<45} {:<26} {:5.1} s {}",
            check.name,
            verdict.code,
            began.elapsed().as_secs_f64(),
            if right { "" } else { evidence.as_str() }
        );
        if !right {
            missed.push((check.name, verdict.code.clone()));
        }
        if check.name == HONEST.name {
            for gate in &verdict.gates {
                println!(
                    "    {:10} {:8.1} ms {}",
                    gate.name.to_string(),
                    gate.ms,
                    gate.evidence
                );
                assert!(
                    matches!(gate.result, GateOutcome::Pass | GateOutcome::Skipped),
                    "{gate:?}"
                );
            }
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_full_scoring_of_the_baselines_own_bytes_never_accepts() {
    let state = tempfile::tempdir().unwrap();
    let Some(mut judge) = open(state.path(), Effort::Full) else {
        return;
    };
    let verdict = score(&mut judge, &HONEST);
    for gate in &verdict.gates {
        println!(
            "{:13} {:9.1} ms {}",
            gate.name.to_string(),
            gate.ms,
            gate.evidence
        );
    }
    assert_ne!(verdict.verdict, Decision::Accept, "{}", verdict.code);
    assert!(judge.report().is_some(), "{}", verdict.code);
}
