//! Gate `floor`: no kernel is faster than moving its bytes.
//!
//! Our own kernels (read, write, copy, and two reads for one write) move the same number of bytes with the same protocol,
//! thread and cache state; the fastest, times 0.8, is the floor. Large caches make one copy figure alone wrong, and inside
//! them a core loads twice and stores once per cycle, which none of the one-way kernels reaches.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ksmith_box::Level;
use ksmith_ledger::Gate;
use ksmith_task::{Bound, chain};
use ksmith_worker::build::{self, Build, BuildOptions, Sources};
use ksmith_worker::cpu::{Access, CallOptions, Edge, Layout, Placement, Worker, WorkerSpec};
use serde_json::json;

use super::context::{End, GateEnd};
use super::measure::{HIDDEN_NEIGHBOUR, Timed};
use super::runner::WorkerOptions;
use crate::bench::Report;
use crate::cases::Case;
use crate::codes::code;
use crate::device::Device;
use crate::judge::JudgeError;

const SOURCE: &str = r"#include <stdint.h>
#include <string.h>
void probe_read(const uint64_t *in, uint64_t *out, int64_t words) {
    uint64_t s[16] = {0};
    for (int64_t i = 0; i + 16 <= words; i += 16)
        for (int j = 0; j < 16; j++) s[j] += in[i + j];
    for (int j = 0; j < 16; j++) out[j] = s[j];
}
void probe_write(const uint64_t *in, uint64_t *out, int64_t words) { memset(out, (int)in[0], (size_t)words * 8); }
void probe_copy(const uint64_t *in, uint64_t *out, int64_t words) { memcpy(out, in, (size_t)(words / 2) * 8); }
void probe_add(const uint64_t *in, uint64_t *restrict out, int64_t words) {
    int64_t n = words / 3;
    const uint64_t *other = in + n;
    for (int64_t i = 0; i < n; i++) out[i] = in[i] + other[i];
}
";
const FACTOR: f64 = 0.8;
/// Fewest calls per probe; the least counts.
const CALLS: usize = 12;
/// Further calls are made for this long: a candidate's least is that of thousands.
const WHILE: Duration = Duration::from_millis(30);

pub(crate) fn floor(
    timed: &[Timed],
    report: &Report,
    build: &BuildOptions,
    scratch: &Path,
    worker: &WorkerOptions,
) -> GateEnd {
    let mut found = Vec::new();
    for (index, workload) in timed.iter().enumerate() {
        let Some(ours) = crate::judge::least_ns(report, index as u32) else {
            continue;
        };
        let bytes = (workload
            .bound
            .cost_bytes
            .min(workload.bound.storage_bytes() as f64)) as u64;
        let mut probe = fastest(bytes, build, scratch, worker)?;
        if impossible(ours, probe.0) {
            // A slow moment of the host during our own probe is no proof.
            for _ in 0..4 {
                probe = probe.min(fastest(bytes, build, scratch, worker)?);
            }
        }
        let (probe_ns, name) = probe;
        let limit = FACTOR * probe_ns as f64;
        // Bytes and times of a hidden shape would tell its size.
        let line = if workload.name == HIDDEN_NEIGHBOUR {
            json!({ "workload": workload.name, "over_floor": ours as f64 / limit })
        } else {
            json!({
                "workload": workload.name, "bytes": bytes, "flops": workload.bound.cost_flops, "probe": name,
                "least_ns": ours, "probe_ns": probe_ns, "floor_ns": limit,
            })
        };
        if impossible(ours, probe_ns) {
            return Ok(End::Fail(code(Gate::Floor, "impossible"), line));
        }
        found.push(line);
    }
    Ok(End::Pass(json!({ "workloads": found })))
}

/// The same on a device, from cold caches, with our own copy's time beside each workload.
pub(crate) fn device_floor(device: &Device, timed: &[Timed], report: &Report) -> GateEnd {
    let _lock = device.lock()?;
    let medians = report
        .last()
        .over_champion
        .as_ref()
        .map(|comparison| comparison.candidate_median_ns.clone())
        .unwrap_or_default();
    let mut found = Vec::new();
    for (index, workload) in timed.iter().enumerate() {
        let Some(ours) = crate::judge::least_ns(report, index as u32) else {
            continue;
        };
        let bytes = roof_bytes(&workload.bound);
        let roofs = device.roofs(bytes).map_err(|error| crate::device::ours(&error))?;
        let fastest = [&roofs.copy, &roofs.write, &roofs.read]
            .into_iter()
            .filter_map(|times| times.iter().min())
            .min()
            .copied()
            .unwrap_or(0);
        let limit = FACTOR * fastest as f64;
        if (ours as f64) < limit {
            return Ok(End::Fail(
                code(Gate::Floor, "impossible"),
                json!({ "least_ns": ours, "floor_ns": limit, "workload": workload.name }),
            ));
        }
        if workload.name == HIDDEN_NEIGHBOUR {
            // Bytes and times of a hidden shape would tell its size.
            found.push(json!({ "workload": workload.name, "over_floor": ours as f64 / limit }));
            continue;
        }
        let copy = median(roofs.copy.clone());
        let share = medians.get(index).map(|time| copy as f64 / time.max(1.0));
        found.push(json!({
            "workload": workload.name, "bytes": bytes, "least_ns": ours, "floor_ns": limit, "copy_ns": copy,
            "copied_by": roofs.copied_by,
            "write_ns": median(roofs.write), "read_ns": median(roofs.read), "median_ns": medians.get(index),
            "share_of_copy": share,
        }));
    }
    Ok(End::Pass(json!({ "workloads": found })))
}

/// Bytes that a call cannot avoid to move.
fn roof_bytes(bound: &Bound) -> usize {
    bound.cost_bytes.min(bound.storage_bytes() as f64) as usize
}

/// Measures our own kernels at the sizes of the dev workloads while the device's memory is fresh.
pub(crate) fn measure_roofs(device: &Device, dev: &[(String, Arc<Case>)]) -> Result<(), JudgeError> {
    device.settle();
    let _lock = device.lock()?;
    for (_, case) in dev {
        device
            .roofs(roof_bytes(&case.spec.bound))
            .map_err(|error| crate::device::ours(&error))?;
    }
    Ok(())
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// Whether a call is faster than the fastest of our own probes allows.
fn impossible(least_ns: u64, probe_ns: u64) -> bool {
    (least_ns as f64) < FACTOR * probe_ns as f64
}

/// The least time of the four probes over `bytes` bytes, in nanoseconds, and whose it is.
fn fastest(
    bytes: u64,
    build: &BuildOptions,
    scratch: &Path,
    options: &WorkerOptions,
) -> Result<(u64, &'static str), JudgeError> {
    let mut least = (u64::MAX, "");
    for (entry, name) in [
        ("probe_read", "read"),
        ("probe_write", "write"),
        ("probe_copy", "copy"),
        ("probe_add", "add"),
    ] {
        let library = compile(entry, build, scratch)?;
        let mut spec = WorkerSpec::new(library, entry);
        spec.threads = options.threads;
        spec.wait = options.wait;
        spec.least = options.least;
        spec.unsandboxed = options.unsandboxed;
        let ns = time(&spec, bytes.max(128)).map_err(|error| JudgeError::Worker(chain(&error)))?;
        least = least.min((ns, name));
    }
    Ok(least)
}

fn time(spec: &WorkerSpec, bytes: u64) -> Result<u64, ksmith_worker::cpu::WorkerError> {
    let mut worker = Worker::start(spec)?;
    let bytes = bytes.next_multiple_of(128);
    let place = |name: &str, access| Placement {
        name: name.to_owned(),
        bytes,
        align: 64,
        access,
        edge: Edge::Start,
    };
    worker.layout(&Layout {
        slots: 1,
        placements: vec![place("in", Access::Input), place("out", Access::Output)],
        scalars: Vec::new(),
        axes: vec![(bytes / 8) as i64],
    })?;
    let mut least = u64::MAX;
    let started = Instant::now();
    for call in 0_usize.. {
        if call >= CALLS && started.elapsed() > WHILE {
            break;
        }
        // The same cache state as a challenge: just written by the judge.
        worker.input_mut(0, 0).fill(call as u8);
        worker.input_mut(0, 1).fill(0xff);
        let options = CallOptions {
            deadline: Duration::from_secs(10),
            early: Vec::new(),
        };
        least = least.min(worker.call(0, &options)?.ns);
    }
    Ok(least)
}

fn compile(entry: &str, options: &BuildOptions, scratch: &Path) -> Result<std::path::PathBuf, JudgeError> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = scratch.join("probe");
    fs::create_dir_all(&folder).map_err(JudgeError::io("could not make a folder for the probes"))?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))
        .map_err(JudgeError::io("could not open the probes to the compiler's box"))?;
    let path = folder.join("probe.c");
    if !path.exists() {
        fs::write(&path, SOURCE).map_err(JudgeError::io("could not write the probes"))?;
    }
    let sources = Sources {
        folder,
        files: vec!["probe.c".to_owned()],
        entry: entry.to_owned(),
        flags: vec!["-O3".to_owned(), "-march=native".to_owned()],
    };
    let _: Level = options.least;
    match build::compile(&sources, options)? {
        Build::Library(library) => Ok(library.path),
        Build::Refused(refused) => Err(JudgeError::Unsupported(format!(
            "our own probes do not compile: {}",
            refused.stderr
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_faster_than_our_own_probe_is_allowed_and_more_is_not() {
        assert!(!impossible(1000, 1000));
        assert!(!impossible(800, 1000));
        assert!(impossible(799, 1000));
        assert!(!impossible(0, 0));
    }
}
