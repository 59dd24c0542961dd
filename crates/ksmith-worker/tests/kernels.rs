//! Real kernels in real workers: honest ones pass, hostile ones get the right fault, and the judge survives.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::{Duration, Instant};

use ksmith_worker::build::{Build, BuildOptions, Sources, compile};
use ksmith_worker::cpu::{
    Access, Call, CallOptions, Edge, Fault, FaultKind, Layout, Placement, Probe, Scalar, Side, Wait, Worker,
    WorkerError, WorkerSpec,
};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

const ELEMENTS: usize = 1000;

/// Compiles `void kernel(const float *x, float *y, float scale, int64_t n)` with this body.
fn library(body: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let prelude = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n\
        #include <signal.h>\n#include <unistd.h>\n#include <pthread.h>\n#include <setjmp.h>\n\
        #include <sys/mman.h>\n#include <sys/syscall.h>\n#include <xmmintrin.h>\n";
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("candidate");
    std::fs::create_dir(&code).unwrap();
    let source = if body.contains("void kernel(") {
        format!("{prelude}{body}")
    } else {
        format!("{prelude}void kernel(const float *x, float *y, float scale, int64_t n) {{ {body} }}\n")
    };
    std::fs::write(code.join("kernel.c"), source).unwrap();
    let sources = Sources {
        folder: code,
        files: vec!["kernel.c".to_owned()],
        entry: "kernel".to_owned(),
        flags: vec!["-O1".to_owned(), "-D_GNU_SOURCE=1".to_owned()],
    };
    match compile(&sources, &BuildOptions::new(&folder.path().join("cache"))).unwrap() {
        Build::Library(library) => (folder, library.path),
        Build::Refused(refused) => panic!("{}", refused.stderr),
    }
}

fn layout(edge: Edge) -> Layout {
    let placement = |name: &str, access| Placement {
        name: name.to_owned(),
        bytes: 4 * ELEMENTS as u64,
        align: 64,
        access,
        edge,
    };
    Layout {
        slots: 2,
        placements: vec![placement("x", Access::Input), placement("y", Access::Output)],
        scalars: vec![Scalar::F32(2.5)],
        axes: vec![ELEMENTS as i64],
    }
}

fn started(body: &str, threads: usize) -> Result<(tempfile::TempDir, Worker), WorkerError> {
    let (folder, path) = library(body);
    let spec = WorkerSpec {
        threads,
        start_limit: Duration::from_secs(3),
        memory_bytes: 128 << 20,
        ..WorkerSpec::new(path, "kernel")
    };
    Worker::start(&spec).map(|worker| (folder, worker))
}

fn fill(worker: &mut Worker, slot: usize, base: f32) {
    for (index, bytes) in worker.input_mut(slot, 0).chunks_exact_mut(4).enumerate() {
        bytes.copy_from_slice(&(base + index as f32).to_le_bytes());
    }
}

fn options() -> CallOptions {
    CallOptions {
        deadline: Duration::from_millis(400),
        early: Vec::new(),
    }
}

fn value(bytes: &[u8], index: usize) -> f32 {
    f32::from_le_bytes(bytes[4 * index..4 * index + 4].try_into().unwrap())
}

#[test]
fn rivals_and_a_low_priority_change_no_answer() {
    // Two threads fill halves; the helper's own threads compete for the one CPU that all of them have.
    let body = "typedef struct { const float *x; float *y; float scale; int64_t from, to; } part;\n\
        static void *work(void *p) { part *h = p; for (int64_t i = h->from; i < h->to; i++) h->y[i] = h->scale * h->x[i]; return 0; }\n\
        void kernel(const float *x, float *y, float scale, int64_t n) {\n\
        part a = {x, y, scale, 0, n / 2}, b = {x, y, scale, n / 2, n}; pthread_t t;\n\
        if (pthread_create(&t, 0, work, &b)) { work(&b); work(&a); return; }\n\
        work(&a); pthread_join(t, 0); }\n";
    let (_folder, path) = library(body);
    let spec = WorkerSpec {
        threads: 2,
        cpus: ksmith_worker::cpu::allowed_cpus().into_iter().take(1).collect(),
        nice: 10,
        rivals: 2,
        wait: Wait::Hybrid,
        ..WorkerSpec::new(path, "kernel")
    };
    let mut worker = Worker::start(&spec).unwrap();
    worker.layout(&layout(Edge::End)).unwrap();
    for round in 0..5 {
        fill(&mut worker, 0, round as f32);
        let patient = CallOptions {
            deadline: Duration::from_secs(5),
            early: Vec::new(),
        };
        worker.call(0, &patient).unwrap();
        let answer = worker.output(0, 1);
        for index in [0, ELEMENTS / 2, ELEMENTS - 1] {
            assert_eq!(value(answer, index), 2.5 * (round as f32 + index as f32));
        }
    }
}

/// Up to three calls of a kernel; the first fault.
fn fault_with(body: &str, threads: usize, edge: Edge) -> Option<Fault> {
    let fault = |error| match error {
        WorkerError::Fault(fault) => Some(fault),
        other => panic!("{other:?}"),
    };
    let begun = Instant::now();
    let (_folder, mut worker) = match started(body, threads) {
        Ok(pair) => pair,
        Err(error) => return fault(error),
    };
    let run = |worker: &mut Worker| -> Result<(), WorkerError> {
        worker.layout(&layout(edge))?;
        for round in 0..3 {
            fill(worker, 0, round as f32);
            worker.call(0, &options())?;
        }
        Ok(())
    };
    let result = run(&mut worker);
    assert!(begun.elapsed() < Duration::from_secs(20), "{body}");
    match result {
        Ok(()) => None,
        Err(error) => {
            assert!(matches!(worker.call(0, &options()), Err(WorkerError::Dead)));
            fault(error)
        }
    }
}

fn fault(body: &str) -> Fault {
    fault_with(body, 1, Edge::End).unwrap_or_else(|| panic!("no fault: {body}"))
}

const HONEST: &str = "for (int64_t i = 0; i < n; i++) y[i] = scale * x[i];";

#[test]
fn an_honest_kernel_computes_on_fresh_inputs_in_every_slot_and_layout() {
    let (_folder, mut worker) = started(HONEST, 1).unwrap();
    for edge in [Edge::End, Edge::Start] {
        worker.layout(&layout(edge)).unwrap();
        for round in 0..20 {
            let slot = round % 2;
            fill(&mut worker, slot, round as f32);
            worker.input_mut(slot, 1).fill(0xff);
            let early = vec![Probe {
                placement: 1,
                offset: 4 * 999,
                bytes: 4,
            }];
            let call = worker.call(slot, &CallOptions { early, ..options() }).unwrap();
            assert_eq!(call.early, [u64::from((2.5 * (999 + round) as f32).to_bits())]);
            for index in 0..ELEMENTS {
                assert_eq!(value(worker.output(slot, 1), index), 2.5 * (round + index) as f32);
                assert_eq!(
                    value(worker.output(slot, 0), index),
                    (round + index) as f32,
                    "inputs stay"
                );
            }
        }
        fill(&mut worker, 0, 1.0);
        fill(&mut worker, 1, 2.0);
        worker.call_batch(2, &options()).unwrap();
        assert_eq!(
            [value(worker.output(0, 1), 0), value(worker.output(1, 1), 0)],
            [2.5, 5.0]
        );
        worker.set_scalars(0, &[Scalar::F32(-1.0)]).unwrap();
        worker.call(0, &options()).unwrap();
        assert_eq!(value(worker.output(0, 1), 3), -4.0);
    }
    assert!(matches!(worker.call(2, &options()), Err(WorkerError::Layout(_))));
    assert!(worker.output(9, 9).is_empty());
}

#[test]
fn a_kernel_with_threads_passes_where_threads_are_allowed_only() {
    let body = "static void *half(void *p) { float **a = p; for (int i = 0; i < 500; i++) a[1][i] = 2.5f * a[0][i]; return 0; }
        void kernel(const float *x, float *y, float scale, int64_t n) {
            const float *a[2] = { x, y }; pthread_t t; if (pthread_create(&t, 0, half, a)) abort();
            for (int i = 500; i < n; i++) y[i] = scale * x[i]; pthread_join(t, 0); }";
    assert_eq!(fault_with(body, 2, Edge::End), None);
    let kind = fault(body).kind;
    assert!(
        matches!(&kind, FaultKind::ForbiddenCall { name } if name.starts_with("clone")),
        "{kind:?}"
    );
}

#[test]
fn twelve_pointers_and_mixed_scalars_arrive_in_order() {
    let body = "void kernel(const float *a, const float *b, const float *c, const float *d, const float *e, const float *f,
        const float *g, float *y, int32_t i, float p, double q, int64_t m, int64_t n) {
        y[0] = a[0]; y[1] = g[0]; y[2] = i; y[3] = p; y[4] = (float)q; y[5] = m; y[6] = n; }";
    let (_folder, mut worker) = started(body, 1).unwrap();
    let placement = |index: usize| Placement {
        name: format!("t{index}"),
        bytes: 64,
        align: 64,
        access: if index == 7 { Access::Output } else { Access::Input },
        edge: Edge::End,
    };
    let layout = Layout {
        slots: 1,
        placements: (0..8).map(placement).collect(),
        scalars: vec![Scalar::Int(-3i64 as u64), Scalar::F32(0.5), Scalar::F64(0.25)],
        axes: vec![7, 9],
    };
    worker.layout(&layout).unwrap();
    worker.input_mut(0, 0)[..4].copy_from_slice(&11f32.to_le_bytes());
    worker.input_mut(0, 6)[..4].copy_from_slice(&17f32.to_le_bytes());
    worker.call(0, &options()).unwrap();
    let got: Vec<f32> = (0..7).map(|index| value(worker.output(0, 7), index)).collect();
    assert_eq!(got, [11.0, 17.0, -3.0, 0.5, 0.25, 7.0, 9.0]);
}

fn named(kind: FaultKind, buffer: &str, side: Side) -> Fault {
    Fault {
        kind,
        buffer: Some(buffer.to_owned()),
        side: Some(side),
    }
}

#[test]
fn accesses_outside_are_named_with_buffer_and_side() {
    let crash = || FaultKind::Crash {
        signal: libc::SIGSEGV,
    };
    assert_eq!(
        fault("((float *)x)[3] = 1;"),
        named(FaultKind::InputWrite, "x", Side::Inside)
    );
    // 1000 floats leave 32 bytes of slack before the guard page.
    assert_eq!(fault("y[n] = 1;"), named(FaultKind::Canary, "y", Side::After));
    assert_eq!(fault("y[-1] = 1;"), named(FaultKind::Canary, "y", Side::Before));
    assert_eq!(fault("y[n + 24] = 1;"), named(crash(), "y", Side::After));
    let start = |body| fault_with(body, 1, Edge::Start).unwrap();
    assert_eq!(start("y[-1] = 1;"), named(crash(), "y", Side::Before));
    assert_eq!(start("y[n] = 1;"), named(FaultKind::Canary, "y", Side::After));
    assert_eq!(start("y[0] = x[-1];"), named(crash(), "x", Side::Before));
    assert_eq!(start("y[0] = x[n + 24];"), named(crash(), "x", Side::After));
    assert_eq!(fault("*(volatile int *)8 = 1;").kind, crash());
}

#[test]
fn ends_of_the_process_are_told_apart() {
    assert_eq!(fault("for (;;) __asm__ volatile(\"\");").kind, FaultKind::Timeout);
    assert_eq!(
        fault("raise(SIGKILL);").kind,
        FaultKind::Crash {
            signal: libc::SIGKILL
        }
    );
    assert_eq!(fault("raise(SIGSTOP);").kind, FaultKind::Timeout);
    assert_eq!(
        fault("abort();").kind,
        FaultKind::Crash {
            signal: libc::SIGABRT
        }
    );
    assert_eq!(fault("exit(0);").kind, FaultKind::Exited { code: 0 });
    assert_eq!(fault("_exit(3);").kind, FaultKind::Exited { code: 3 });
    assert_eq!(
        fault("__builtin_trap();").kind,
        FaultKind::Crash { signal: libc::SIGILL }
    );
    // A jump into a frame that is gone may even work; whatever it does, the judge lives.
    let games = "static jmp_buf there; void kernel(const float *x, float *y, float s, int64_t n) {
        static int calls; if (calls++ == 0) { setjmp(there); return; } longjmp(there, 1); }";
    if let Some(fault) = fault_with(games, 1, Edge::End) {
        let kind = fault.kind;
        assert!(
            matches!(
                kind,
                FaultKind::Crash { .. } | FaultKind::Timeout | FaultKind::Protocol { .. }
            ),
            "{kind:?}"
        );
    }
}

#[test]
fn forbidden_calls_are_faults_even_with_a_handler() {
    let forbidden = |name: &str| FaultKind::ForbiddenCall {
        name: name.to_owned(),
    };
    assert_eq!(fault("syscall(SYS_socket, 2, 1, 0);").kind, forbidden("socket"));
    assert_eq!(
        fault("syscall(SYS_ptrace, 16, getppid(), 0, 0);").kind,
        forbidden("getppid")
    );
    assert_eq!(
        fault("syscall(SYS_ptrace, 16, 1, 0, 0);").kind,
        forbidden("ptrace")
    );
    assert_eq!(fault("if (fork() == 0) for (;;);").kind, forbidden("clone"));
    assert_eq!(
        fault("for (int fd = 0; fd < 64; fd++) ftruncate(fd, 0);").kind,
        forbidden("ftruncate")
    );
    assert_eq!(fault("kill(1, SIGKILL);").kind, forbidden("kill"));
    assert_eq!(
        fault("execl(\"/bin/sh\", \"sh\", (char *)0);").kind,
        forbidden("execve")
    );
    let handler = "static void on(int s) { } void kernel(const float *x, float *y, float scale, int64_t n) {
        signal(SIGSYS, on); signal(SIGSEGV, on); syscall(SYS_socket, 2, 1, 0); }";
    assert_eq!(fault(handler).kind, forbidden("socket"));
}

#[test]
fn inputs_stay_read_only_whatever_is_tried() {
    let page = "char *p = (char *)((uintptr_t)x & ~4095ul);";
    assert_eq!(
        fault(&format!(
            "{page} if (mprotect(p, 4096, PROT_READ | PROT_WRITE)) _exit(42); *p = 1;"
        ))
        .kind,
        FaultKind::Exited { code: 42 }
    );
    assert_eq!(
        fault("if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 4, 0) == MAP_FAILED) _exit(43);").kind,
        FaultKind::Exited { code: 43 }
    );
}

#[test]
fn constructors_run_in_the_box_and_their_death_is_the_candidates() {
    let constructor = |body: &str| {
        format!(
            "__attribute__((constructor)) static void early(void) {{ {body} }}
             void kernel(const float *x, float *y, float scale, int64_t n) {{ {HONEST} }}"
        )
    };
    assert_eq!(
        fault(&constructor("_exit(5);")).kind,
        FaultKind::Exited { code: 5 }
    );
    assert_eq!(
        fault(&constructor("for (;;) pause();")).kind,
        FaultKind::ForbiddenCall {
            name: "pause".to_owned()
        }
    );
    assert_eq!(
        fault(&constructor("for (;;) __asm__ volatile(\"\");")).kind,
        FaultKind::Timeout
    );
    assert_eq!(fault_with(&constructor(""), 1, Edge::End), None);
    let missing = fault(
        "extern void nowhere(void); void kernel(const float *x, float *y, float s, int64_t n) { nowhere(); }",
    );
    assert!(
        matches!(&missing.kind, FaultKind::Load { message } if message.contains("nowhere")),
        "{missing:?}"
    );
}

#[test]
fn rounding_and_flush_to_zero_must_be_left_alone() {
    assert_eq!(
        fault("_mm_setcsr(_mm_getcsr() | 0x8040);").kind,
        FaultKind::ControlBits
    );
    // Sticky exception flags are not control bits.
    let sticky = "volatile float big = 3e38f; y[0] = big * big / (x[0] - x[0]);";
    assert_eq!(fault_with(sticky, 1, Edge::End), None);
}

/// Finds the answer page by its only shared writable map of one page, which has no guard behind it.
const FORGE: &str = "
    static volatile uint64_t *page(void) {
        static volatile uint64_t *found; if (found) return found;
        found = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 5, 0);
        return found == MAP_FAILED ? 0 : found;
    }";

#[test]
fn an_answer_given_early_shows_the_work_that_is_missing() {
    let body = format!(
        "{FORGE} void kernel(const float *x, float *y, float scale, int64_t n) {{
            volatile uint64_t *answer = page(); if (!answer) _exit(9); answer[0] = answer[0] + 1;
            for (volatile int i = 0; i < 100000000; i++); {HONEST} }}"
    );
    let (_folder, mut worker) = started(&body, 1).unwrap();
    worker.layout(&layout(Edge::End)).unwrap();
    fill(&mut worker, 0, 1.0);
    let early = vec![Probe {
        placement: 1,
        offset: 400,
        bytes: 4,
    }];
    let call = worker.call(0, &CallOptions { early, ..options() }).unwrap();
    assert_eq!(call.early, [0], "read at once");
    assert_eq!(
        value(worker.output(0, 1), 100),
        0.0,
        "frozen before the work was done"
    );
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(value(worker.output(0, 1), 100), 0.0, "and it stays frozen");
}

#[test]
fn garbage_on_the_answer_page_confuses_nobody() {
    for garbage in [
        "memset((void *)page(), 0xff, 4096);",
        "page()[0] = 77; for (volatile int i = 0; i < 10000000; i++);",
        "memset((void *)page(), 0, 4096);",
    ] {
        let body =
            format!("{FORGE} void kernel(const float *x, float *y, float scale, int64_t n) {{ {garbage} }}");
        let fault = fault_with(&body, 1, Edge::End).expect(garbage);
        let odd = matches!(
            fault.kind,
            FaultKind::Protocol { .. } | FaultKind::ControlBits | FaultKind::Timeout
        );
        assert!(odd, "{garbage}: {fault:?}");
    }
    // A forged fault address names a wrong buffer at most; the signal is the kernel's word.
    let forged = format!(
        "{FORGE} void kernel(const float *x, float *y, float scale, int64_t n) {{
        page()[6] = 11; page()[7] = (uint64_t)y; raise(SIGKILL); }}"
    );
    assert_eq!(
        fault(&forged),
        FaultKind::Crash {
            signal: libc::SIGKILL
        }
        .into()
    );
}

#[test]
fn closed_descriptors_and_lost_maps_harm_the_candidate_only() {
    let closing = "for (int fd = 0; fd < 64; fd++) close(fd);";
    assert_eq!(
        fault_with(closing, 1, Edge::End),
        None,
        "shared memory needs no descriptor"
    );
    let (_folder, mut worker) = started(closing, 1).unwrap();
    worker.layout(&layout(Edge::End)).unwrap();
    worker.call(0, &options()).unwrap();
    let again = worker.layout(&layout(Edge::End));
    assert!(
        matches!(
            again,
            Err(WorkerError::Fault(Fault {
                kind: FaultKind::Protocol { .. },
                ..
            }))
        ),
        "{again:?}"
    );
    let unmapping = "munmap((void *)((uintptr_t)y & ~4095ul), 4096); y[0] = 1;";
    assert_eq!(
        fault(unmapping),
        named(
            FaultKind::Crash {
                signal: libc::SIGSEGV
            },
            "y",
            Side::Inside
        )
    );
}

#[test]
fn memory_beyond_the_limit_is_a_fault() {
    let (_folder, mut worker) = started(
        "for (;;) { char *p = malloc(1 << 24); memset(p, 1, 1 << 24); }",
        1,
    )
    .unwrap();
    worker.layout(&layout(Edge::End)).unwrap();
    let patient = CallOptions {
        deadline: Duration::from_secs(20),
        ..options()
    };
    let Err(WorkerError::Fault(Fault { kind, .. })) = worker.call(0, &patient) else {
        panic!("no fault")
    };
    assert!(
        matches!(
            kind,
            FaultKind::OutOfMemory
                | FaultKind::Crash {
                    signal: libc::SIGSEGV
                }
        ),
        "{kind:?}"
    );
}

#[test]
fn a_thread_that_works_on_behind_the_answer_is_frozen_too() {
    let body = "static float *target; static void *later(void *p) { for (volatile int i = 0; i < 200000000; i++); target[7] = 7; return 0; }
        void kernel(const float *x, float *y, float scale, int64_t n) { target = y; pthread_t t; pthread_create(&t, 0, later, 0); }";
    let (_folder, mut worker) = started(body, 2).unwrap();
    worker.layout(&layout(Edge::End)).unwrap();
    worker.call(0, &options()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(value(worker.output(0, 1), 7), 0.0);
}

#[test]
fn handshake_start_and_layout_have_their_price() {
    let (_folder, path) = library("void kernel(void) {}");
    let spec = WorkerSpec::new(path, "kernel");
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let mut starts = Vec::new();
    for _ in 0..10 {
        let begun = Instant::now();
        drop(Worker::start(&spec).unwrap());
        starts.push(begun.elapsed());
    }
    let mut worker = Worker::start(&spec).unwrap();
    let mut layouts = Vec::new();
    for _ in 0..10 {
        let begun = Instant::now();
        worker.layout(&layout(Edge::End)).unwrap();
        layouts.push(begun.elapsed());
    }
    let begun = Instant::now();
    let calls: Vec<Call> = (0..200).map(|_| worker.call(0, &options()).unwrap()).collect();
    let whole = begun.elapsed() / 200;
    let mut ns: Vec<u64> = calls.iter().map(|call| call.ns).collect();
    ns.sort();
    println!(
        "start and end {:?}, layout {:?}, call with thaw and freeze {whole:?}, handshake {} ns (p90 {} ns), level {}, {:?}",
        median(starts),
        median(layouts),
        ns[100],
        ns[180],
        worker.level(),
        worker.wait()
    );
    assert!(ns[20] < 1_000_000, "{ns:?}");
}
