//! What a worker costs: starting one in its box, laying out its buffers, and one challenge of a kernel that does nothing.
//!
//! `cargo bench -p ksmith-worker`. The handshake is part of every timed call and is published, never subtracted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use divan::Bencher;
use ksmith_worker::build::{Build, BuildOptions, Sources, compile};
use ksmith_worker::cpu::{Access, CallOptions, Edge, Layout, Placement, Wait, Worker, WorkerSpec};

fn main() {
    ksmith_worker::intercept();
    divan::main();
}

/// A library whose entry writes one byte and returns.
fn library(folder: &Path) -> PathBuf {
    let code = folder.join("candidate");
    std::fs::create_dir(&code).expect("a writable folder");
    std::fs::write(
        code.join("kernel.c"),
        "void kernel(const char *x, char *y, long n) { y[0] = x[0]; }\n",
    )
    .expect("a writable folder");
    let sources = Sources {
        folder: code,
        files: vec!["kernel.c".to_owned()],
        entry: "kernel".to_owned(),
        flags: vec!["-O2".to_owned()],
    };
    match compile(&sources, &BuildOptions::new(&folder.join("cache"))).expect("gcc and a box") {
        Build::Library(library) => library.path,
        Build::Refused(refused) => panic!("{}", refused.stderr),
    }
}

fn spec(folder: &Path) -> WorkerSpec {
    let mut spec = WorkerSpec::new(library(folder), "kernel");
    spec.threads = 1;
    spec.wait = Wait::Spin;
    spec
}

fn layout(bytes: u64) -> Layout {
    let place = |name: &str, access| Placement {
        name: name.to_owned(),
        bytes,
        align: 64,
        access,
        edge: Edge::Start,
    };
    Layout {
        slots: 1,
        placements: vec![place("x", Access::Input), place("y", Access::Output)],
        scalars: Vec::new(),
        axes: vec![bytes as i64],
    }
}

/// A worker from nothing to ready, and its end.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn start(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let spec = spec(folder.path());
    bencher.bench_local(|| Worker::start(&spec).expect("a box"));
}

/// New buffers for a running worker.
#[divan::bench(sample_count = 50, sample_size = 1, args = [4 << 10, 4 << 20])]
fn lay_out(bencher: Bencher<'_, '_>, bytes: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut worker = Worker::start(&spec(folder.path())).expect("a box");
    let layout = layout(bytes);
    bencher.bench_local(|| worker.layout(&layout).expect("buffers"));
}

/// One challenge as the host sees it: reveal, answer, freeze, thaw.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn challenge(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut worker = Worker::start(&spec(folder.path())).expect("a box");
    worker.layout(&layout(4 << 10)).expect("buffers");
    let options = CallOptions {
        deadline: Duration::from_secs(1),
        early: Vec::new(),
    };
    bencher.bench_local(|| worker.call(0, &options).expect("an answer"));
}

/// The handshake alone: what the judge's own clock shows for a call that does nothing.
#[divan::bench(sample_count = 1, sample_size = 1)]
fn handshake(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut worker = Worker::start(&spec(folder.path())).expect("a box");
    worker.layout(&layout(4 << 10)).expect("buffers");
    let options = CallOptions {
        deadline: Duration::from_secs(1),
        early: Vec::new(),
    };
    bencher.bench_local(|| {
        let mut ns: Vec<u64> = (0..500)
            .map(|_| worker.call(0, &options).expect("an answer").ns)
            .collect();
        ns.sort_unstable();
        #[expect(clippy::print_stdout, reason = "the figure of this benchmark")]
        {
            println!(
                "handshake: median {} ns, least {} ns over 500 calls",
                ns[250], ns[0]
            );
        }
    });
}
