//! Judging real candidates in real boxes: each gate catches a cheat and passes an honest kernel.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ksmith_box::Level;
use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_ledger::{Decision, Gate, GateOutcome, Verdict};
use ksmith_task::{Candidate, Task};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

/// One judge serves all tests: opening compiles the reference and the baseline.
static JUDGE: Mutex<Option<(tempfile::TempDir, Judge)>> = Mutex::new(None);

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn open_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_judge<T>(work: impl FnOnce(&mut Judge) -> T) -> T {
    let mut slot = JUDGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (_, judge) = slot.get_or_insert_with(|| {
        let state = tempfile::tempdir().unwrap();
        open_all(state.path());
        let task = Task::load(testdata().join("scale_add")).unwrap();
        let instance = task.instances().remove(0);
        let mut options = JudgeOptions::new(state.path());
        options.least = Level::Limits;
        options.effort = Effort::Correctness;
        let judge = Judge::open(&instance, options).unwrap_or_else(|error| panic!("{error}: {error:?}"));
        (state, judge)
    });
    work(judge)
}

fn candidate(source: &str) -> (tempfile::TempDir, Candidate) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("candidate.toml"),
        "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"scale_add\"\nflags = [\"-O2\"]\n",
    )
    .unwrap();
    fs::write(folder.path().join("kernel.c"), source).unwrap();
    let candidate = Candidate::load(folder.path()).unwrap();
    (folder, candidate)
}

fn score(source: &str) -> Verdict {
    let (_folder, candidate) = candidate(source);
    with_judge(|judge| judge.score(&candidate))
}

const HEAD: &str = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n\
    void scale_add(const float *x, const float *y, float *z, float a, int64_t n)\n";

fn kernel(body: &str) -> String {
    format!("{HEAD}{{\n{body}\n}}\n")
}

fn code(verdict: &Verdict) -> String {
    format!(
        "{} at {:?}: {:?}",
        verdict.code,
        verdict.gate,
        verdict.gates.last().map(|gate| &gate.evidence)
    )
}

#[track_caller]
fn caught(source: &str, gate: Gate, cause: &str) {
    let verdict = score(source);
    assert_eq!(verdict.verdict, Decision::Reject, "{}", code(&verdict));
    assert_eq!(verdict.code, format!("{gate}/{cause}"), "{}", code(&verdict));
}

const HONEST: &str = "for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];";

#[test]
fn an_honest_kernel_passes_every_gate() {
    let verdict = score(&kernel(HONEST));
    assert_eq!(verdict.code, "gain/not-measured", "{}", code(&verdict));
    for gate in &verdict.gates {
        assert!(
            matches!(gate.result, GateOutcome::Pass | GateOutcome::Skipped),
            "{gate:?}"
        );
        println!(
            "{:10} {:8.1} ms {}",
            gate.name.to_string(),
            gate.ms,
            gate.evidence
        );
    }
}

#[test]
fn candidates_beside_each_other_are_ordered_by_their_times_and_a_wrong_one_has_a_code() {
    let slow = "volatile float s = 0; for (int64_t i = 0; i < n; i++) { s = s + 1; z[i] = a * x[i] + y[i]; }";
    let wrong = "for (int64_t i = 0; i < n; i++) z[i] = a * x[i] - y[i];";
    let sources = [slow, HONEST, wrong].map(|body| candidate(&kernel(body)));
    let candidates: Vec<Candidate> = sources.iter().map(|(_, candidate)| candidate.clone()).collect();
    let ranking = with_judge(|judge| judge.beside(&candidates)).unwrap();
    assert!(ranking.rounds >= 3, "{ranking:?}");
    let [slow, honest, wrong] = &ranking.ratios[..] else {
        panic!("{ranking:?}");
    };
    assert!(
        slow.clone().unwrap() * 1.5 < honest.clone().unwrap(),
        "{ranking:?}"
    );
    assert_eq!(wrong.clone().unwrap_err(), "slow/wrong-value");
}

#[test]
fn a_syntax_error_is_data_of_gate_compile() {
    caught("int scale_add(", Gate::Compile, "error");
}

#[test]
fn an_import_of_the_clock_is_caught_by_gate_static() {
    let source = format!(
        "#include <time.h>\n{}",
        kernel(
            "struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i] + (t.tv_sec == 1);"
        )
    );
    caught(&source, Gate::Static, "forbidden-import");
}

#[test]
fn a_constructor_is_caught_by_gate_static() {
    let source = format!(
        "static int ready;\n__attribute__((constructor)) static void early(void) {{ ready = 1; }}\n{}",
        kernel("for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i] + (ready == 7);")
    );
    caught(&source, Gate::Static, "constructor");
}

#[test]
fn a_wrong_formula_is_caught_by_gate_smoke_and_shown() {
    let verdict = score(&kernel("for (int64_t i = 0; i < n; i++) z[i] = a * x[i] - y[i];"));
    assert_eq!(verdict.code, "smoke/wrong-value", "{}", code(&verdict));
    let evidence = &verdict.gates.last().unwrap().evidence;
    assert_eq!(evidence["output"], "z");
    assert!(evidence["got"].is_number() && evidence["want"].is_number() && evidence["place"].is_array());
}

#[test]
fn a_constant_output_is_caught_by_gate_smoke() {
    caught(
        &kernel("for (int64_t i = 0; i < n; i++) z[i] = 0;"),
        Gate::Smoke,
        "wrong-value",
    );
}

#[test]
fn a_write_to_an_input_is_caught_by_gate_smoke() {
    caught(
        &kernel("((float *)x)[0] = 0; for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];"),
        Gate::Smoke,
        "input-write",
    );
}

#[test]
fn an_endless_loop_is_a_timeout() {
    caught(
        &kernel("volatile int go = 1; while (go) ; z[0] = x[0] + y[0] * a * (float)n;"),
        Gate::Smoke,
        "timeout",
    );
}

#[test]
fn a_size_switch_is_caught_by_gate_dev() {
    caught(
        &kernel(
            "float s = n == 20000 ? 0.9999f : 1.0f; for (int64_t i = 0; i < n; i++) z[i] = s * a * x[i] + y[i];",
        ),
        Gate::Dev,
        "wrong-value",
    );
}

#[test]
fn a_kernel_for_the_usual_distribution_only_is_caught_by_gate_hidden_which_tells_nothing() {
    let verdict = score(&kernel(
        "for (int64_t i = 0; i < n; i++) z[i] = fabsf(x[i]) > 8.0f ? y[i] : a * x[i] + y[i];",
    ));
    assert_eq!(verdict.code, "hidden/wrong-value", "{}", code(&verdict));
    let evidence = verdict.gates.last().unwrap().evidence.to_string();
    assert_eq!(evidence, "{\"class\":\"wrong-value\"}");
}

#[test]
fn a_read_past_the_end_is_caught_by_a_guard_page() {
    let verdict = score(&kernel(
        "volatile float s = 0; for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i]; s = x[n + 1024];",
    ));
    assert!(verdict.code.ends_with("/crash"), "{}", code(&verdict));
}

#[test]
fn an_unwritten_last_element_is_called_so() {
    let verdict = score(&kernel(
        "for (int64_t i = 0; i + 1 < n; i++) z[i] = a * x[i] + y[i];",
    ));
    assert_eq!(verdict.code, "smoke/unwritten", "{}", code(&verdict));
    let computed = score(&kernel("for (int64_t i = 0; i < n; i++) z[i] = 0.0f / 0.0f;"));
    assert_eq!(computed.code, "smoke/non-finite", "{}", code(&computed));
}

#[test]
fn a_memo_keyed_by_a_sample_is_caught_by_gate_depends() {
    let source = format!(
        "#include <stdlib.h>\nstatic float k0, k1, *memo; static int64_t kn;\n{}",
        kernel(
            "if (memo && kn == n && k0 == x[0] && k1 == x[n - 1]) {{ memcpy(z, memo, 4 * n); return; }}\n\
             for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];\n\
             free(memo); memo = malloc(4 * n); memcpy(memo, z, 4 * n); kn = n; k0 = x[0]; k1 = x[n - 1];"
        )
        .replace("{{", "{")
        .replace("}}", "}")
    );
    caught(&source, Gate::Depends, "stale");
}

#[test]
fn low_precision_inside_is_caught_by_gate_precision_or_earlier() {
    let verdict = score(&kernel(
        "for (int64_t i = 0; i < n; i++) { uint32_t b; float p = a * x[i]; memcpy(&b, &p, 4); b &= 0xfffffff0u; memcpy(&p, &b, 4); z[i] = p + y[i]; }",
    ));
    assert_eq!(verdict.verdict, Decision::Reject, "{}", code(&verdict));
}

#[test]
fn an_overflow_of_the_kernels_own_scratch_is_caught_by_gate_sanitize() {
    // No guard page and no canary of ours lies there.
    caught(
        &kernel(
            "volatile int five = 5; float *p = malloc(16); for (int k = 0; k < five; k++) p[k] = x[0] * k;\n\
             for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i] + (p[1] == 1e30f); free(p);",
        ),
        Gate::Sanitize,
        "address",
    );
}

#[test]
fn a_result_that_depends_on_addresses_is_caught_by_gate_repeat() {
    caught(
        &kernel(
            "float f = 1.0f + ((uintptr_t)z >> 12 & 3) * 1.2e-7f; for (int64_t i = 0; i < n; i++) z[i] = f * (a * x[i] + y[i]);",
        ),
        Gate::Repeat,
        "differs",
    );
}

#[test]
fn an_output_that_depends_on_old_memory_is_caught_by_gate_poison() {
    caught(
        &kernel("for (int64_t i = 0; i < n; i++) z[i] = isnan(z[i]) ? a * x[i] + y[i] : z[i];"),
        Gate::Poison,
        "old-output",
    );
}

#[test]
fn a_read_before_a_buffer_is_caught_by_a_guard_page() {
    let verdict = score(&kernel(
        "volatile float s = x[-1]; for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i]; s = x[-17];",
    ));
    assert!(
        ["hidden/crash", "bounds/crash", "repeat/crash"].contains(&verdict.code.as_str()),
        "{}",
        code(&verdict)
    );
}

#[test]
fn an_error_near_the_whole_tolerance_is_caught_by_gate_precision() {
    caught(
        &kernel("for (int64_t i = 0; i < n; i++) z[i] = (a * x[i] + y[i]) * 1.0000008f;"),
        Gate::Precision,
        "too-coarse",
    );
}

#[test]
fn a_forbidden_system_call_is_named() {
    let verdict = score(&kernel(
        "long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(41L), \"D\"(2L), \"S\"(1L), \"d\"(0L) : \"rcx\", \"r11\", \"memory\"); for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i] + (r == 12345);",
    ));
    assert_eq!(verdict.verdict, Decision::Reject, "{}", code(&verdict));
    assert!(
        ["static/system-call", "smoke/forbidden-call"].contains(&verdict.code.as_str()),
        "{}",
        code(&verdict)
    );
}

#[test]
fn constants_that_spell_a_system_call_are_no_system_call() {
    let verdict = score(&kernel(
        "volatile uint32_t h = 0x0000050fu; for (int64_t i = 0; i < n; i++) { z[i] = a * x[i] + y[i]; h = (h ^ 0x0000050fu) * 0x80cd050fu + 0x0f34050fu; }",
    ));
    assert_eq!(verdict.code, "gain/not-measured", "{}", code(&verdict));
}

#[test]
fn a_system_call_inside_another_instruction_meets_the_call_filter() {
    // `cmp al, 15; add eax, ..` to a reader; entered one byte later it is `syscall`, here for a socket.
    caught(
        &kernel(
            "__asm__ volatile(\"mov $41, %%eax\\n\\tmov $2, %%edi\\n\\tmov $1, %%esi\\n\\txor %%edx, %%edx\\n\\tjmp 1f + 1\\n1:\\t.byte 0x3c, 0x0f, 0x05, 0x90, 0x90, 0x90, 0x90\" ::: \"rax\", \"rcx\", \"rdx\", \"rsi\", \"rdi\", \"r11\", \"memory\"); for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];",
        ),
        Gate::Smoke,
        "forbidden-call",
    );
}

#[test]
fn the_compilers_own_feature_test_may_start_and_one_of_its_name_may_not() {
    let honest = kernel(
        "float f = __builtin_cpu_supports(\"avx2\") ? a : a; for (int64_t i = 0; i < n; i++) z[i] = f * x[i] + y[i];",
    );
    let verdict = score(&honest);
    assert_eq!(verdict.code, "gain/not-measured", "{}", code(&verdict));
    let source = format!(
        "static int ready;\n__attribute__((constructor)) static void __cpu_indicator_init(void) {{ ready = 1; }}\n{}",
        kernel("for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i] + (ready == 7);")
    );
    caught(&source, Gate::Static, "constructor");
}

#[test]
fn a_threshold_that_no_contract_thought_of_is_caught_by_the_judges_own_probes() {
    caught(
        &kernel("for (int64_t i = 0; i < n; i++) z[i] = a * (fabsf(x[i]) > 1e6f ? 1e6f : x[i]) + y[i];"),
        Gate::Probes,
        "wrong-value",
    );
}

#[test]
fn a_kernel_for_small_sizes_only_is_caught_by_the_large_hidden_shape() {
    caught(
        &kernel("for (int64_t i = 0; i < n; i++) z[i] = i < 130000 ? a * x[i] + y[i] : 0.0f;"),
        Gate::Hidden,
        "wrong-value",
    );
}

#[test]
fn the_floor_stands_in_the_evidence_with_its_probe() {
    let state = tempfile::tempdir().unwrap();
    open_all(state.path());
    let task = Task::load(testdata().join("scale_add")).unwrap();
    let mut options = JudgeOptions::new(state.path());
    options.least = Level::Limits;
    options.effort = Effort::Corpus;
    let mut judge = Judge::open(&task.instances()[0], options).unwrap();
    let (_folder, honest) = candidate(&kernel(HONEST));
    let verdict = judge.score(&honest);
    let Some(floor) = verdict.gates.iter().find(|gate| gate.name == Gate::Floor) else {
        panic!("{}", code(&verdict));
    };
    assert_eq!(floor.result, GateOutcome::Pass, "{floor:?}");
    let lines = floor.evidence["workloads"].as_array().unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        if line["workload"] == "hidden neighbour" {
            assert!(line.get("bytes").is_none(), "{line}");
            continue;
        }
        let number = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key}: {line}"));
        assert!(number("bytes") > 0.0 && number("probe_ns") > 0.0);
        assert!((number("floor_ns") - 0.8 * number("probe_ns")).abs() < 1.0);
        assert!(number("least_ns") >= number("floor_ns"));
        assert!(["read", "write", "copy", "add"].contains(&line["probe"].as_str().unwrap()));
    }
}

#[test]
fn screening_passes_an_honest_kernel_and_turns_a_slow_one_away() {
    let (_one, honest) = candidate(&kernel(HONEST));
    let (_two, slow) = candidate(&kernel(
        "for (int r = 0; r < 12; r++) for (int64_t i = 0; i < n; i++) { z[i] = a * x[i] + y[i]; __asm__ volatile(\"\" ::: \"memory\"); }",
    ));
    with_judge(|judge| {
        let verdict = judge.screen(&honest);
        assert_eq!(verdict.code, "screen/passed", "{}", code(&verdict));
        let started = std::time::Instant::now();
        let verdict = judge.screen(&honest);
        println!("screening, compiled before: {:?}", started.elapsed());
        assert_eq!(verdict.verdict, Decision::Revise);
        let verdict = judge.screen(&slow);
        assert_eq!(verdict.code, "slow/slower", "{}", code(&verdict));
    });
}

#[test]
fn secrets_are_committed_before_and_revealed_after() {
    score(&kernel(HONEST));
    with_judge(|judge| {
        let (promised, revealed) = (judge.commitments(), judge.reveal());
        assert!(!promised.is_empty() && promised.len() == revealed.len());
        for (promise, secret) in promised.iter().zip(&revealed) {
            assert_eq!(promise.purpose, secret.purpose);
            assert_eq!(secret.seed.len(), 64);
        }
        // What is promised before a pass is what the pass uses: nothing new is drawn.
        judge.promise_screen().unwrap();
        judge.promise_score().unwrap();
        let promised = judge.commitments();
        let (_folder, honest) = candidate(&kernel(HONEST));
        judge.score(&honest);
        assert_eq!(judge.commitments(), promised);
    });
}

#[test]
fn a_full_scoring_of_the_baselines_own_bytes_never_accepts() {
    let state = tempfile::tempdir().unwrap();
    open_all(state.path());
    let task = Task::load(testdata().join("scale_add")).unwrap();
    let mut options = JudgeOptions::new(state.path());
    options.least = Level::Limits;
    options.settings.stage_seconds = 4.0;
    options.settings.quiet_seconds = 0.5;
    let mut judge = Judge::open(&task.instances()[0], options).unwrap();
    let baseline = Candidate::load(task.dir().join("baseline")).unwrap();
    let verdict = judge.score(&baseline);
    println!("{}", code(&verdict));
    for gate in &verdict.gates {
        println!("{:13} {:9.1} ms", gate.name.to_string(), gate.ms);
    }
    assert_ne!(verdict.verdict, Decision::Accept, "{}", code(&verdict));
    assert!(
        verdict.gates.iter().any(|gate| gate.name == Gate::Bench),
        "{}",
        code(&verdict)
    );
    assert!(judge.report().is_some());
}

#[test]
fn the_audit_passes_the_test_task_and_refuses_a_tolerance_that_lets_zeros_through() {
    let state = tempfile::tempdir().unwrap();
    open_all(state.path());
    let options = || {
        let mut options = JudgeOptions::new(state.path());
        options.least = Level::Limits;
        options
    };
    let task = Task::load(testdata().join("scale_add")).unwrap();
    let audit = ksmith_judge::audit(&task.instances()[0], options()).unwrap();
    assert!(audit.passed() && audit.findings.is_empty(), "{audit:?}");
    assert!(
        audit
            .cost
            .is_some_and(|cost| cost.hidden_cases > 0 && cost.bytes > 0),
        "{audit:?}"
    );

    let loose = tempfile::tempdir().unwrap();
    open_all(loose.path());
    fs::create_dir(loose.path().join("baseline")).unwrap();
    open_all(&loose.path().join("baseline"));
    for file in ["reference.c", "baseline/candidate.toml", "baseline/kernel.c"] {
        fs::copy(testdata().join("scale_add").join(file), loose.path().join(file)).unwrap();
    }
    let text = fs::read_to_string(testdata().join("scale_add/task.toml")).unwrap();
    fs::write(
        loose.path().join("task.toml"),
        text.replace("atol = 1e-30", "atol = 100.0"),
    )
    .unwrap();
    let task = Task::load(loose.path()).unwrap();
    let audit = ksmith_judge::audit(&task.instances()[0], options()).unwrap();
    assert!(!audit.passed(), "{audit:?}");
    let checks: Vec<&str> = audit
        .findings
        .iter()
        .map(|finding| finding.check.as_str())
        .collect();
    assert!(
        checks.contains(&"trivial-candidate") && checks.contains(&"input-without-effect"),
        "{checks:?}"
    );
    assert!(checks.contains(&"precision-not-separated"), "{checks:?}");
}

#[test]
fn a_truly_faster_kernel_is_accepted_unless_the_machine_is_too_busy_to_tell() {
    let state = tempfile::tempdir().unwrap();
    open_all(state.path());
    let task = Task::load(testdata().join("scale_add")).unwrap();
    let mut options = JudgeOptions::new(state.path());
    options.least = Level::Limits;
    options.settings.stage_seconds = 6.0;
    options.settings.quiet_seconds = 2.0;
    let mut judge = Judge::open(&task.instances()[0], options).unwrap();
    let (folder, _) = candidate(&kernel(HONEST));
    let manifest = folder.path().join("candidate.toml");
    let text = fs::read_to_string(&manifest)
        .unwrap()
        .replace("-O2", "-O3\", \"-march=native");
    fs::write(&manifest, text).unwrap();
    let verdict = judge.score(&Candidate::load(folder.path()).unwrap());
    println!(
        "{}\n{:?} {:?}",
        code(&verdict),
        verdict.verdict,
        verdict.over_baseline
    );
    for gate in &verdict.gates {
        println!(
            "{:13} {:9.1} ms {}",
            gate.name.to_string(),
            gate.ms,
            gate.evidence
        );
    }
    assert_ne!(verdict.verdict, Decision::Reject, "{}", code(&verdict));
    if verdict.verdict == Decision::Accept {
        assert!(
            verdict.speedup.is_some_and(|gain| gain.lower > 1.01),
            "{:?}",
            verdict.speedup
        );
        assert_eq!(verdict.gates.last().map(|gate| gate.name), Some(Gate::Regression));
    } else {
        println!("skipped 1 check of acceptance: {}", verdict.code);
    }
}
