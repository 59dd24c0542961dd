//! What judging costs: inputs, reference, comparison, screening, a full correctness pass of a trivial candidate.
//!
//! `cargo bench -p ksmith-judge`. The last entry prints the time of each gate once.

use std::path::Path;
use std::time::Duration;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use ksmith_box::Level;
use ksmith_judge::cases::{Key, Secret, Target, draw};
use ksmith_judge::compare::{Overflow, Rule, compare};
use ksmith_judge::number::{self, Values};
use ksmith_judge::reference::{Argument, Kind, Live, Program, Scalar, Signature};
use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_task::expr::Env;
use ksmith_task::{Candidate, DType, Fill, Task};

const ELEMENTS: usize = 1 << 20;

fn main() {
    ksmith_worker::intercept();
    divan::main();
}

fn fill(text: &str) -> Fill {
    Fill::parse(text)
        .and_then(|fill| fill.resolve(&Env::new()))
        .expect("a fill of the contract format")
}

#[divan::bench(args = ["normal(0, 1)", "uniform(-1, 1)", "wide(6)", "sorted(normal(0, 1))"])]
fn generate(bencher: Bencher<'_, '_>, text: &str) {
    let fill = fill(text);
    let key = Key::new(&Secret::dev(), "bench", 0, "x");
    let target = Target {
        dtype: DType::F32,
        shape: &[1024, 1024],
        domain: None,
    };
    bencher
        .counter(BytesCount::of_many::<f32>(ELEMENTS))
        .bench(|| draw(&fill, &target, &key));
}

#[divan::bench(args = [DType::F32, DType::Bf16, DType::F8e4m3])]
fn encode(bencher: Bencher<'_, '_>, dtype: &DType) {
    let values: Vec<f64> = (0..ELEMENTS).map(|i| (i % 997) as f64 * 0.37 - 100.0).collect();
    let mut bytes = vec![0; ELEMENTS * dtype.bytes()];
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| number::encode_reals(*dtype, &values, &mut bytes));
}

#[divan::bench(args = [DType::F32, DType::Bf16])]
fn compare_all(bencher: Bencher<'_, '_>, dtype: &DType) {
    let want: Vec<f64> = (0..ELEMENTS).map(|i| (i % 997) as f64 * 0.37 - 100.0).collect();
    let mut bytes = vec![0; ELEMENTS * dtype.bytes()];
    number::encode_reals(*dtype, &want, &mut bytes);
    let rule = Rule {
        dtype: *dtype,
        atol: 1e-6,
        rtol: 0.01,
        ctol: 0.0,
        overflow: Overflow::Inf,
        exact: false,
    };
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench(|| compare(&rule, &bytes, &want, None));
}

#[divan::bench]
fn reference(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("reference.c");
    std::fs::write(
        &source,
        "#include <stdint.h>\nvoid reference(const double *x, double *y, double a, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = a * x[i]; }\n",
    )
    .expect("a writable folder");
    let argument = |name: &str, written| Argument {
        name: name.to_owned(),
        kind: Kind::Real,
        rank: 1,
        written,
    };
    let signature = Signature {
        tensors: vec![argument("x", false), argument("y", true)],
        scalars: vec![Kind::Real],
        axes: 1,
    };
    let program = Program::build(
        &source,
        "reference",
        signature,
        &folder.path().join("cache"),
        (Level::Limits, false, 1),
    )
    .expect("a reference that compiles");
    let mut live = Live::start(&program, Duration::from_secs(60)).expect("a box");
    let values = Values::Real(vec![1.5; ELEMENTS]);
    let shape: &[usize] = &[ELEMENTS];
    bencher
        .counter(BytesCount::of_many::<f64>(2 * ELEMENTS))
        .bench_local(|| {
            live.call(
                &[(&values, shape)],
                &[shape],
                &[Scalar::Real(2.0)],
                &[ELEMENTS as i64],
            )
            .expect("values")
        });
}

/// The task of this crate's own tests, and the one that the README runs.
const TASKS: [(&str, &str); 2] = [
    ("testdata/scale_add", "baseline"),
    ("../../tasks/softmax", "baseline/cpu"),
];

fn judge(which: usize, effort: Effort) -> (tempfile::TempDir, Judge, Candidate) {
    let (task, baseline) = TASKS[which];
    let task = Task::load(Path::new(env!("CARGO_MANIFEST_DIR")).join(task)).expect("a task");
    let baseline = Candidate::load(task.dir().join(baseline)).expect("its baseline");
    let state = tempfile::tempdir().expect("a temporary folder");
    let mut options = JudgeOptions::new(state.path());
    options.least = Level::Limits;
    options.effort = effort;
    options.settings.quiet_seconds = 1.0;
    let judge = Judge::open(&task.instances()[0], options).expect("a judge");
    (state, judge, baseline)
}

/// Screening without compilation: the library comes from the cache.
#[divan::bench(sample_count = 20, sample_size = 1, args = [0, 1])]
fn screening(bencher: Bencher<'_, '_>, task: usize) {
    let (_state, mut judge, candidate) = judge(task, Effort::Correctness);
    judge.screen(&candidate);
    bencher.bench_local(|| judge.screen(&candidate));
}

/// A hopeless candidate, the README's baseline four times over, from the end of its compilation to its rejection. The limit is
/// 300 ms; the time of each gate is printed once.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn screening_hopeless(bencher: Bencher<'_, '_>) {
    let (state, mut judge, baseline) = judge(1, Effort::Full);
    let hopeless = repeated(&baseline, &state.path().join("hopeless"));
    judge.screen(&hopeless);
    let verdict = judge.screen(&hopeless);
    assert_eq!(verdict.code, "slow/slower");
    for gate in &verdict.gates {
        report_line(&format!(
            "screening {:13} {:9.1} ms",
            gate.name.to_string(),
            gate.ms
        ));
    }
    bencher.bench_local(|| judge.screen(&hopeless));
}

/// The same candidate, doing its work four times.
fn repeated(candidate: &Candidate, folder: &Path) -> Candidate {
    let text: String = candidate
        .sources
        .iter()
        .map(|source| source.text.replace("void softmax(", "static void once("))
        .collect();
    std::fs::create_dir_all(folder).expect("a writable folder");
    let source = format!(
        "{text}\nvoid softmax(const float *x, float *y, int64_t rows, int64_t cols) {{\n\
         for (int k = 0; k < 4; k++) {{ once(x, y, rows, cols); __asm__ volatile(\"\" ::: \"memory\"); }}\n}}\n"
    );
    std::fs::write(folder.join("kernel.c"), source).expect("a writable folder");
    std::fs::write(
        folder.join("candidate.toml"),
        "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"softmax\"\nflags = [\"-O3\", \"-march=native\"]\n",
    )
    .expect("a writable folder");
    Candidate::load(folder).expect("a candidate")
}

/// Candidates of one round of the search.
const ROUND: usize = 12;

/// The task's baseline as a candidate that nobody has compiled before.
fn variant(baseline: &Candidate, folder: &Path, number: usize) -> Candidate {
    let folder = folder.join(format!("variant-{number}"));
    std::fs::create_dir(&folder).expect("a writable folder");
    for source in &baseline.sources {
        std::fs::copy(baseline.dir.join(&source.path), folder.join(&source.path)).expect("a writable folder");
    }
    let manifest = std::fs::read_to_string(baseline.dir.join("candidate.toml"))
        .expect("a manifest")
        .replace("flags = [", &format!("flags = [\"-DVARIANT={number}\", "));
    std::fs::write(folder.join("candidate.toml"), manifest).expect("a writable folder");
    Candidate::load(&folder).expect("a candidate")
}

/// A round of the softmax search: compiled on all CPUs, then screened one by one. Times 60 it is the rate per minute.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn screening_round(bencher: Bencher<'_, '_>) {
    let (_state, mut judge, baseline) = judge(1, Effort::Full);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut number = 0;
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        let candidates: Vec<Candidate> = (0..ROUND)
            .map(|_| {
                number += 1;
                variant(&baseline, folder.path(), number)
            })
            .collect();
        judge.build_ahead(&candidates);
        for candidate in &candidates {
            judge.screen(candidate);
        }
    });
}

/// All correctness gates at small shapes, without compilation.
#[divan::bench(sample_count = 5, sample_size = 1, args = [0, 1])]
fn correctness_pass(bencher: Bencher<'_, '_>, task: usize) {
    let (_state, mut judge, candidate) = judge(task, Effort::Correctness);
    judge.score(&candidate);
    bencher.bench_local(|| judge.score(&candidate));
}

/// A full scoring of the baseline itself, with the time of each gate.
#[divan::bench(sample_count = 1, sample_size = 1, args = [0, 1])]
fn full_scoring(bencher: Bencher<'_, '_>, task: usize) {
    let (_state, mut judge, candidate) = judge(task, Effort::Full);
    bencher.bench_local(|| {
        let verdict = judge.score(&candidate);
        report_line(&format!("{} {}", TASKS[task].0, verdict.code));
        for gate in &verdict.gates {
            report_line(&format!("{:13} {:9.1} ms", gate.name.to_string(), gate.ms));
        }
    });
}

#[expect(clippy::print_stderr, reason = "a benchmark reports to its user")]
fn report_line(line: &str) {
    eprintln!("{line}");
}
