//! This machine itself: compilers, vector units, counters, isolation, clock, governor, noise, load.

use std::time::Duration;

use crate::CompilerKind;
use crate::host::{Command, Ended};

use super::{Probes, Row, State};

pub(super) fn rows(probes: &Probes<'_>) -> Vec<Row> {
    let mut rows = vec![
        compilers(probes),
        vector(probes),
        counters(probes),
        isolation(probes),
        clock(probes),
        governor(probes),
    ];
    rows.extend(noise(probes));
    rows.extend(load(probes));
    rows
}

fn compilers(probes: &Probes<'_>) -> Row {
    const NAME: &str = "compilers";
    let all = &probes.machine.compilers;
    let has = |kinds: [CompilerKind; 2]| all.iter().any(|compiler| kinds.contains(&compiler.kind));
    let list: Vec<String> = all
        .iter()
        .map(|compiler| {
            let name = match compiler.kind {
                CompilerKind::Gcc => "gcc",
                CompilerKind::Gxx => "g++",
                CompilerKind::Clang => "clang",
                CompilerKind::Clangxx => "clang++",
            };
            format!("{name} {}", compiler.version)
        })
        .collect();
    let fix = "apt-get install gcc g++";
    if !has([CompilerKind::Gcc, CompilerKind::Clang]) {
        return Row::new(
            NAME,
            State::Missing,
            "no C compiler: candidates and references cannot be built",
        )
        .fix(fix);
    }
    if !has([CompilerKind::Gxx, CompilerKind::Clangxx]) {
        let finding = format!("{}; no C++ compiler: candidates in C only", list.join(", "));
        return Row::new(NAME, State::Limited, finding).fix(fix);
    }
    Row::new(NAME, State::Ok, list.join(", "))
}

fn vector(probes: &Probes<'_>) -> Row {
    const NAME: &str = "vector ISA";
    match probes.machine.cpu.vector_isa() {
        Some(isa) => Row::new(NAME, State::Ok, isa),
        None => Row::new(
            NAME,
            State::Limited,
            "the kernel names no vector extension; code is built for the base ISA",
        ),
    }
}

/// Hardware counters of the CPU, by counting one command.
fn counters(probes: &Probes<'_>) -> Row {
    const NAME: &str = "perf counters";
    let fallback = if probes.host.find("valgrind").is_some() {
        "profiles use callgrind"
    } else {
        "profiles use the static model"
    };
    let output = probes.host.run(
        &Command::new("perf", ["stat", "-x,", "-e", "instructions:u,cycles:u", "true"])
            .limit(Duration::from_secs(10)),
    );
    let paranoid = probes
        .host
        .read("/proc/sys/kernel/perf_event_paranoid".as_ref())
        .and_then(|text| text.trim().parse::<i32>().ok());
    let text = output.both();
    match output.ended {
        Ended::NotFound => Row::new(
            NAME,
            State::Missing,
            format!("`perf` is not installed; {fallback}"),
        )
        .fix("apt-get install linux-perf"),
        Ended::TimedOut => Row::new(
            NAME,
            State::Limited,
            format!("`perf stat` did not answer within 10 s; {fallback}"),
        )
        .fix("perf stat true"),
        Ended::Exited(_) | Ended::NotStarted if text.contains("<not supported>") => {
            let place = if probes.machine.system.is_virtual() {
                "this virtual machine offers none"
            } else {
                "the kernel offers none"
            };
            Row::new(NAME, State::Limited, format!("{place}; {fallback}"))
        }
        Ended::Exited(0) if counted(&text) => {
            Row::new(NAME, State::Ok, "instructions and cycles are counted")
        }
        Ended::Exited(_) | Ended::NotStarted => {
            let setting = paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
            Row::new(
                NAME,
                State::Limited,
                format!("refused (perf_event_paranoid is {setting}); {fallback}"),
            )
            .fix("as the administrator: sysctl kernel.perf_event_paranoid=2")
        }
    }
}

/// Whether `perf stat -x,` counted instructions: its first field is then a number.
fn counted(text: &str) -> bool {
    text.lines()
        .filter(|line| line.contains("instructions"))
        .any(|line| {
            line.split(',')
                .next()
                .is_some_and(|count| count.trim().parse::<u64>().is_ok())
        })
}

fn isolation(probes: &Probes<'_>) -> Row {
    const NAME: &str = "isolation";
    let facts = &probes.isolation;
    let lacking: Vec<String> = facts
        .layers
        .iter()
        .filter(|layer| !layer.works)
        .map(|layer| format!("{} ({})", layer.name, layer.detail))
        .collect();
    let without = if lacking.is_empty() {
        String::new()
    } else {
        format!("; without {}", lacking.join(", "))
    };
    match facts.level.as_str() {
        "box" => Row::new(NAME, State::Ok, format!("level `box`{without}")),
        "kernel" | "limits" => Row::new(
            NAME,
            State::Limited,
            format!("level `{}`{without}; every verdict says so", facts.level),
        )
        .fix(
            "allow user namespaces (in a container: --security-opt seccomp=unconfined), then: ksmith doctor",
        ),
        "none" => Row::new(
            NAME,
            State::Missing,
            format!("none{without}; nothing is judged without `--unsandboxed`"),
        )
        .fix("use Linux 5.13 or newer with Landlock"),
        _ => Row::new(NAME, State::Missing, "not probed").fix("ksmith doctor, from the installed binary"),
    }
}

fn clock(probes: &Probes<'_>) -> Row {
    const NAME: &str = "clock";
    let clock = &probes.machine.clock;
    let cost = probes
        .noise
        .as_ref()
        .map(|noise| format!(", {:.0} ns a read", noise.clock_read_ns))
        .unwrap_or_default();
    let finding = format!("{}{cost}", clock.source);
    if clock.is_fast() && clock.source != "unknown" {
        Row::new(NAME, State::Ok, finding)
    } else {
        Row::new(NAME, State::Limited, format!("{finding}; too slow to time short calls"))
            .fix("as the administrator: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource")
    }
}

fn governor(probes: &Probes<'_>) -> Row {
    const NAME: &str = "governor";
    match probes.machine.clock.governor.as_deref() {
        Some("performance") => Row::new(NAME, State::Ok, "performance"),
        Some(other) => Row::new(
            NAME,
            State::Limited,
            format!("`{other}`: the frequency follows the load"),
        )
        .fix("as the administrator: cpupower frequency-set -g performance"),
        None if probes.machine.system.is_virtual() => Row::new(
            NAME,
            State::NotApplicable,
            "the hypervisor sets the frequency; arms are interleaved against drift",
        ),
        None => Row::new(NAME, State::NotApplicable, "the kernel shows none"),
    }
}

fn noise(probes: &Probes<'_>) -> Option<Row> {
    let noise = probes.noise.as_ref()?;
    let finding = format!(
        "spread {:.1} %, {:.0} interruptions a second, longest {:.1} ms",
        100.0 * noise.spread,
        noise.interruptions_per_second,
        noise.worst_gap_ns as f64 / 1e6
    );
    Some(if noise.is_steady() {
        Row::new("noise", State::Ok, finding)
    } else {
        Row::new(
            "noise",
            State::Limited,
            format!("{finding}; small gains need many more calls"),
        )
        .fix("end other work on this machine, then: ksmith doctor")
    })
}

fn load(probes: &Probes<'_>) -> Option<Row> {
    let load = probes.load.as_ref()?;
    Some(if load.is_quiet() {
        Row::new("load", State::Ok, load.describe())
    } else {
        Row::new(
            "load",
            State::Limited,
            format!("{}; verdicts would be `ambiguous/machine-busy`", load.describe()),
        )
        .fix("end other work on this machine, then: ksmith doctor")
    })
}
