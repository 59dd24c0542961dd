//! What a worker's process holds: the inputs of its call, and no seed, expected value or key.
//!
//! The look is from outside, through `/proc`, so that it sees at least what the candidate can see.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use ksmith_worker::build::{Build, BuildOptions, Sources, compile};
use ksmith_worker::cpu::{Access, CallOptions, Edge, Layout, Placement, Worker, WorkerSpec};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

const ELEMENTS: usize = 1024;
const SOURCE: &str = "#include <stdint.h>\nvoid kernel(const double *x, double *y, int64_t n) \
                      { for (int64_t i = 0; i < n; i++) y[i] = x[i] * 0.5; }\n";

fn started(folder: &std::path::Path) -> Worker {
    let code = folder.join("candidate");
    fs::create_dir(&code).unwrap();
    fs::write(code.join("kernel.c"), SOURCE).unwrap();
    let sources = Sources {
        folder: code,
        files: vec!["kernel.c".to_owned()],
        entry: "kernel".to_owned(),
        flags: vec!["-O1".to_owned()],
    };
    let Build::Library(library) = compile(&sources, &BuildOptions::new(&folder.join("cache"))).unwrap()
    else {
        panic!("the kernel does not compile");
    };
    Worker::start(&WorkerSpec::new(library.path, "kernel")).unwrap()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Every process below this one.
fn descendants() -> Vec<u32> {
    let all: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect();
    let me = std::process::id();
    all.into_iter()
        .filter(|&pid| {
            pid != me && std::iter::successors(Some(pid), |&pid| parent_of(pid)).any(|pid| pid == me)
        })
        .collect()
}

/// All readable memory of a process; `None` where this user may not look.
fn memory(pid: u32) -> Option<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let file = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut found = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" r")) {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let (from, to) = (
            u64::from_str_radix(from, 16).ok()?,
            u64::from_str_radix(to, 16).ok()?,
        );
        let mut part = vec![0; usize::try_from((to - from).min(64 << 20)).ok()?];
        if file.read_exact_at(&mut part, from).is_ok() {
            found.extend_from_slice(&part);
        }
    }
    Some(found)
}

fn holds(memory: &[u8], words: &[u8]) -> bool {
    memory.windows(words.len()).any(|window| window == words)
}

#[test]
fn a_worker_holds_its_inputs_and_no_seed_expected_value_or_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = started(folder.path());
    // Secrets of the judge: fresh, in this process and in a file of its own.
    let mut seed = [0u8; 32];
    std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut seed).unwrap();
    fs::write(folder.path().join("secrets"), seed).unwrap();
    let draw = |index: usize| {
        f64::from_le_bytes(seed[index % 24..index % 24 + 8].try_into().unwrap())
            .abs()
            .sqrt()
    };
    let inputs: Vec<u8> = (0..ELEMENTS)
        .flat_map(|index| (1.0 + draw(index) % 1.0 + index as f64).to_le_bytes())
        .collect();
    // Expectations differ from what the kernel computes: they must be found nowhere.
    let expected: Vec<u8> = (0..ELEMENTS)
        .flat_map(|index| (0.75 + draw(index) % 1.0 + index as f64).to_le_bytes())
        .collect();
    let place = |name: &str, access| Placement {
        name: name.to_owned(),
        bytes: 8 * ELEMENTS as u64,
        align: 64,
        access,
        edge: Edge::End,
    };
    worker
        .layout(&Layout {
            slots: 1,
            placements: vec![place("x", Access::Input), place("y", Access::Output)],
            scalars: Vec::new(),
            axes: vec![ELEMENTS as i64],
        })
        .unwrap();
    worker.input_mut(0, 0).copy_from_slice(&inputs);
    let options = CallOptions {
        deadline: Duration::from_secs(5),
        early: Vec::new(),
    };
    worker.call(0, &options).unwrap();

    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut workers = 0;
    for pid in descendants() {
        let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        for text in [read("cmdline"), read("environ")] {
            assert!(!holds(&text, hex.as_bytes()) && !holds(&text, &seed));
            assert!(!String::from_utf8_lossy(&text).contains("secrets"));
        }
        let Some(memory) = memory(pid) else { continue };
        assert!(!holds(&memory, &seed), "a seed is in process {pid}");
        assert!(
            !holds(&memory, hex.as_bytes()),
            "a seed is in process {pid}, as text"
        );
        assert!(
            !holds(&memory, &expected[64..128]),
            "expected values are in process {pid}"
        );
        if !holds(&memory, &inputs[64..128]) {
            continue;
        }
        // This is the worker itself, and the look works.
        workers += 1;
        assert!(
            read("environ").iter().all(|byte| *byte == 0),
            "the environment is not empty"
        );
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
            let target = fs::read_link(entry.path()).unwrap().display().to_string();
            let plain = ["socket:", "pipe:", "/memfd:", "/dev/null", "anon_inode:"];
            assert!(
                plain.iter().any(|start| target.starts_with(start)),
                "descriptor of `{target}`"
            );
        }
    }
    if workers == 0 {
        println!("skipped: this user may not read the memory of boxed processes");
    }
    drop(worker);
}
