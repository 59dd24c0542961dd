//! Shortcuts of KDAttn on a device, each one change of the task's own kernel: all must be rejected, the kernel itself not.

use std::fs;
use std::path::Path;
use std::time::Instant;

use ksmith_judge::Effort;
use ksmith_ledger::Decision;
use ksmith_task::Candidate;

use super::{crate_folder, open};

/// What it does, what stands in the kernel, and what comes in its place.
const SHORTCUTS: &[(&str, &str, &str)] = &[
    (
        "beta dropped",
        "float delta = beta[token] *",
        "float delta = 0.5f *",
    ),
    (
        "beta of the first token",
        "float delta = beta[token] *",
        "float delta = beta[head * tokens] *",
    ),
    (
        "gate rounded to open or shut",
        "beta[token] *",
        "rintf(beta[token]) *",
    ),
    (
        "weak gates skipped",
        "float delta = beta[token] *",
        "float delta = (beta[token] < 0.05f ? 0.0f : beta[token]) *",
    ),
    (
        "constant key norm",
        "kk = 1.0f / sqrtf(kk + 1e-6f);",
        "kk = 1.0f / sqrtf((float)dk);",
    ),
    (
        "constant query norm",
        "qq = 1.0f / sqrtf(qq + 1e-6f) / sqrtf((float)dk);",
        "qq = 1.0f / (float)dk;",
    ),
    (
        "key norm of the first half",
        "kk += key[i] * key[i];",
        "kk += i < dk / 2 ? 2.0f * key[i] * key[i] : 0.0f;",
    ),
    ("correction dropped", " - seen);", ");"),
    (
        "zeroed branch",
        "(get(v[token * dv + j]) - seen);",
        "(0.0f - seen);",
    ),
    ("decay dropped", "state[i * 128 + j] *= decay[i];", ""),
    (
        "first-order decay",
        "expf(g[token * dk + j])",
        "1.0f + g[token * dk + j]",
    ),
    (
        "decay of the first channel",
        "state[i * 128 + j] *= decay[i];",
        "state[i * 128 + j] *= decay[0];",
    ),
    (
        "final state copied",
        "ht[(head * dk + i) * dv + j] = state[i * 128 + j];",
        "ht[(head * dk + i) * dv + j] = h0[(head * dk + i) * dv + j];",
    ),
    (
        "final state unwritten",
        "ht[(head * dk + i) * dv + j] = state[i * 128 + j];",
        "{}",
    ),
    (
        "short history",
        "for (long long t = 0; t < tokens; t++) {",
        "for (long long t = tokens > 16 ? tokens - 16 : 0; t < tokens; t++) {",
    ),
    (
        "initial state ignored",
        "state[i * 128 + j] = h0[(head * dk + i) * dv + j];",
        "state[i * 128 + j] = 0.0f;",
    ),
    (
        "upper half of the initial state ignored",
        "state[i * 128 + j] = h0[(head * dk + i) * dv + j];",
        "state[i * 128 + j] = i < (dk + 1) / 2 ? h0[(head * dk + i) * dv + j] : 0.0f;",
    ),
    (
        "state kept in bfloat16",
        "read += state[i * 128 + j]",
        "state[i * 128 + j] = __uint_as_float(__float_as_uint(state[i * 128 + j]) & 0xffff0000u);\n read += state[i * 128 + j]",
    ),
    (
        "all heads by the first one's gates",
        "decay[j] = expf(g[token * dk + j]);",
        "decay[j] = expf(g[t * dk + j]);",
    ),
];

#[test]
fn every_shortcut_of_kdattn_is_rejected() {
    let task = Path::new("../../tasks/kdattn");
    let state = tempfile::tempdir().unwrap();
    let Some(mut judge) = open(
        task,
        "kdattn[T=f32]",
        state.path(),
        Effort::Correctness,
        SHORTCUTS.len() + 1,
    ) else {
        return;
    };
    let baseline = crate_folder().join(task).join("baseline/cuda");
    let plan = fs::read(baseline.join("candidate.toml")).unwrap();
    let source = fs::read_to_string(baseline.join("kernel.cu")).unwrap();
    let mut wrong = Vec::new();
    let itself = [("the kernel itself", "", "")];
    for (name, there, instead) in itself.iter().chain(SHORTCUTS) {
        let folder = tempfile::tempdir().unwrap();
        let changed = source.replacen(there, instead, usize::from(!there.is_empty()));
        assert!(there.is_empty() || changed != source, "{name}: not in the kernel");
        fs::write(folder.path().join("candidate.toml"), &plan).unwrap();
        fs::write(folder.path().join("kernel.cu"), changed).unwrap();
        let began = Instant::now();
        let verdict = judge.score(&Candidate::load(folder.path()).unwrap());
        println!(
            "{name:<45} {:<26} {:5.1} s",
            verdict.code,
            began.elapsed().as_secs_f64()
        );
        let right = match there.is_empty() {
            true => verdict.code == "gain/not-measured",
            false => verdict.verdict == Decision::Reject,
        };
        if !right {
            println!("    {}", verdict.gates.last().unwrap().evidence);
            wrong.push((*name, verdict.code.clone()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
