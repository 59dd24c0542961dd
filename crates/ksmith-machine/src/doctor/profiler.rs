//! Nsight Compute, hardware counters and PM sampling, probed apart: each can be there without the next.
//!
//! The cure for `ERR_NVGPUCTRPERM` is a setting of the driver, made once by whoever administers the machine. Running
//! the profiler, or this program, as root is not: an agent's kernels would run as root with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::GpuVirtualisation;
use crate::compiler::version_in;
use crate::host::{Command, Ended, Output};

use super::{Probes, Row, State};

const COUNTERS: &str = "ncu counters";
const SAMPLING: &str = "ncu pm sampling";

/// The driver's setting that opens counters to every user (NVIDIA, ERR_NVGPUCTRPERM page).
const PERMISSION_FIX: &str = "as the administrator, once: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' \
                              > /etc/modprobe.d/nvidia-profiling.conf, then restart the machine";

pub(super) fn rows(probes: &Probes<'_>) -> Vec<Row> {
    let Some(program) = find_ncu(probes) else {
        return without_ncu(probes);
    };
    let ncu = ncu(probes, &program);
    if probes.machine.gpus.is_empty() {
        let finding = "no NVIDIA device on this machine; `ncu` reads reports of others here";
        return vec![
            ncu,
            Row::new(COUNTERS, State::NotApplicable, finding),
            Row::new(SAMPLING, State::NotApplicable, finding),
        ];
    }
    if probes.machine.system.hypervisor.as_deref() == Some("gvisor") {
        let finding = "this container runs under gVisor, where counters cannot be read";
        let row = |name| {
            Row::new(name, State::Limited, finding)
                .fix("use a machine whose containers run on its own kernel")
        };
        return vec![ncu, row(COUNTERS), row(SAMPLING)];
    }
    let counters = counters(probes, &program);
    let sampling = if counters.state == State::Ok {
        sampling(probes, &program)
    } else {
        Row::new(SAMPLING, State::Limited, "not tried: it needs the counters")
            .fix(format!("see `{COUNTERS}`"))
    };
    vec![ncu, counters, sampling]
}

fn without_ncu(probes: &Probes<'_>) -> Vec<Row> {
    let import = "CSV reports of others can be read without it: ksmith profile --import FILE";
    if probes.machine.gpus.is_empty() {
        let row = |name| Row::new(name, State::NotApplicable, "no NVIDIA device on this machine");
        return vec![
            Row::new(
                "ncu",
                State::NotApplicable,
                format!("not installed, and no NVIDIA device to profile; {import}"),
            ),
            row(COUNTERS),
            row(SAMPLING),
        ];
    }
    let row = |name| Row::new(name, State::Missing, "needs `ncu`").fix("see `ncu`");
    vec![
        Row::new(
            "ncu",
            State::Missing,
            format!("Nsight Compute is not installed; {import}"),
        )
        .fix("apt-get install cuda-nsight-compute-13-0"),
        row(COUNTERS),
        row(SAMPLING),
    ]
}

/// `ncu` on the search path, else where its installers put it.
fn find_ncu(probes: &Probes<'_>) -> Option<PathBuf> {
    if let Some(path) = probes.host.find("ncu") {
        return Some(path);
    }
    let mut places = vec![
        PathBuf::from("/usr/local/cuda/bin/ncu"),
        PathBuf::from("/opt/cuda/bin/ncu"),
    ];
    let root = Path::new("/opt/nvidia/nsight-compute");
    places.extend(
        probes
            .host
            .list(root)
            .iter()
            .rev()
            .map(|version| root.join(version).join("ncu")),
    );
    places.into_iter().find(|path| probes.host.exists(path))
}

fn ncu(probes: &Probes<'_>, program: &Path) -> Row {
    let output = probes
        .host
        .run(&Command::new(program.to_string_lossy(), ["--version"]).limit(Duration::from_secs(20)));
    let version = output
        .success()
        .and_then(|text| text.lines().find(|line| line.starts_with("Version")))
        .and_then(version_in);
    match version {
        Some(version) => Row::new(
            "ncu",
            State::Ok,
            format!("Nsight Compute {version} (`{}`)", program.display()),
        ),
        None => Row::new(
            "ncu",
            State::Limited,
            format!("`{} --version` gave no version", program.display()),
        )
        .fix("apt-get install --reinstall cuda-nsight-compute-13-0"),
    }
}

/// Whether counters may be read: by profiling one small kernel, else by what the driver's settings say.
fn counters(probes: &Probes<'_>, program: &Path) -> Row {
    let Some(kernel) = &probes.kernel_program else {
        return counters_by_setting(probes);
    };
    let output = profile(probes, program, kernel, &["--metrics", "sm__cycles_elapsed.max"]);
    match refusal(probes, &output) {
        Some(row) => row,
        None if value_of(&output.stdout, "sm__cycles_elapsed.max").is_some() => Row::new(
            COUNTERS,
            State::Ok,
            "a test kernel was profiled, its counters were read",
        ),
        None => {
            let line = last_line(&output);
            Row::new(
                COUNTERS,
                State::Limited,
                format!("a test kernel gave no counter: {line}"),
            )
            .fix(format!(
                "run it by hand and read its message: {} --version",
                program.display()
            ))
        }
    }
}

fn counters_by_setting(probes: &Probes<'_>) -> Row {
    let parameters = probes
        .host
        .read("/proc/driver/nvidia/params".as_ref())
        .unwrap_or_default();
    let setting = parameters
        .lines()
        .find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))
        .and_then(|value| value.trim().parse::<u32>().ok());
    match setting {
        Some(0) => Row::new(
            COUNTERS,
            State::Ok,
            "the driver lets every user read them (not tried with a kernel)",
        ),
        Some(_) if has_admin_capability(probes) => Row::new(
            COUNTERS,
            State::Ok,
            "the driver reserves them for administrators, and this process has that right (not tried with a kernel)",
        ),
        Some(_) => Row::new(
            COUNTERS,
            State::Limited,
            "the driver reserves them for administrators: `ncu` would end with ERR_NVGPUCTRPERM",
        )
        .fix(permission_fix(probes)),
        None => Row::new(
            COUNTERS,
            State::Limited,
            "not known: no test kernel was run, and the driver does not say",
        )
        .fix("ksmith doctor, from the installed binary"),
    }
}

/// PM sampling: a row of values over time, missing under vGPU and MIG.
fn sampling(probes: &Probes<'_>, program: &Path) -> Row {
    if probes
        .machine
        .gpus
        .iter()
        .any(|gpu| gpu.mig || gpu.virtualisation == GpuVirtualisation::VGpu)
    {
        return Row::new(
            SAMPLING,
            State::Limited,
            "not available on a share of a device (vGPU, MIG)",
        )
        .fix("use a whole device; the other readings do not need it");
    }
    let Some(kernel) = &probes.kernel_program else {
        return Row::new(SAMPLING, State::Limited, "not tried: no test kernel at hand")
            .fix("ksmith doctor, from the installed binary");
    };
    let output = profile(probes, program, kernel, &["--section", "PmSampling"]);
    if let Some(row) = refusal(probes, &output) {
        return Row {
            name: SAMPLING.to_owned(),
            ..row
        };
    }
    let sampled = columns(&output.stdout)
        .into_iter()
        .filter(|(name, value)| {
            (name.starts_with("pmsampling:") || name.contains(".Triage"))
                && value.bytes().any(|b| b.is_ascii_digit())
        })
        .count();
    if sampled > 0 {
        Row::new(
            SAMPLING,
            State::Ok,
            format!("a test kernel gave {sampled} sampled series"),
        )
    } else {
        Row::new(SAMPLING, State::Limited, "a test kernel gave no samples")
            .fix("update driver and Nsight Compute; the other readings do not need it")
    }
}

fn profile(probes: &Probes<'_>, ncu: &Path, kernel: &[String], what: &[&str]) -> Output {
    let mut args: Vec<String> = ["--csv", "--page", "raw", "--launch-count", "1"]
        .iter()
        .map(|arg| (*arg).to_owned())
        .collect();
    args.extend(what.iter().map(|arg| (*arg).to_owned()));
    args.extend(kernel.iter().cloned());
    probes
        .host
        .run(&Command::new(ncu.to_string_lossy(), args).limit(Duration::from_secs(60)))
}

/// The refusals that have a name.
fn refusal(probes: &Probes<'_>, output: &Output) -> Option<Row> {
    let text = output.both();
    if output.ended == Ended::TimedOut {
        return Some(
            Row::new(
                COUNTERS,
                State::Limited,
                "`ncu` did not finish a test kernel within 60 s",
            )
            .fix("end other profilers on this device, then: ksmith doctor"),
        );
    }
    if text.contains("ERR_NVGPUCTRPERM") {
        return Some(
            Row::new(
                COUNTERS,
                State::Limited,
                "ERR_NVGPUCTRPERM: the driver reserves counters for administrators",
            )
            .fix(permission_fix(probes)),
        );
    }
    if text.contains("Profiling is not supported on") {
        return Some(
            Row::new(
                COUNTERS,
                State::Limited,
                "this device or its virtualisation does not offer counters",
            )
            .fix("use a whole device on its own kernel; the record says `unavailable` meanwhile"),
        );
    }
    if text.contains("driver resource was unavailable") || text.contains("DRIVER_RESOURCE_UNAVAILABLE") {
        return Some(
            Row::new(
                COUNTERS,
                State::Limited,
                "another profiler or a monitor (DCGM) holds the counters",
            )
            .fix("dcgmi profile --pause"),
        );
    }
    if text.contains("not compatible with") {
        return Some(
            Row::new(
                COUNTERS,
                State::Limited,
                "this `ncu` and this driver do not fit together",
            )
            .fix("apt-get install cuda-nsight-compute-13-0"),
        );
    }
    None
}

fn permission_fix(probes: &Probes<'_>) -> String {
    if probes.machine.system.container.is_some() {
        return format!(
            "on the host, not in this container, {PERMISSION_FIX}; a rented host: ask the provider"
        );
    }
    PERMISSION_FIX.to_owned()
}

/// CAP_SYS_ADMIN (bit 21) in the effective set.
fn has_admin_capability(probes: &Probes<'_>) -> bool {
    probes
        .host
        .read("/proc/self/status".as_ref())
        .and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .is_some_and(|set| set >> 21 & 1 == 1)
}

/// Name and first value of each column of a raw page: header, units, values, after `ncu`'s own lines.
fn columns(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"ID\""));
    let (Some(header), Some(_units), Some(values)) = (lines.next(), lines.next(), lines.next()) else {
        return Vec::new();
    };
    fields(header).into_iter().zip(fields(values)).collect()
}

/// Fields of a line in which each is quoted, as `ncu` writes them.
fn fields(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('"').trim_end_matches('"');
    inner.split("\",\"").map(str::to_owned).collect()
}

fn value_of(text: &str, metric: &str) -> Option<f64> {
    let (_, value) = columns(text).into_iter().find(|(name, _)| name == metric)?;
    value.replace(',', "").parse().ok()
}

fn last_line(output: &Output) -> String {
    let text = output.both();
    let line = text
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("no output");
    line.chars().take(160).collect()
}
