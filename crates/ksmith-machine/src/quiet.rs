//! Foreign load: how much CPU time others take, and waiting for a moment when it is little.
//!
//! Guards against verdicts from a busy machine: under a foreign load near one CPU nothing reliable can be said about
//! calls of 2 ms and more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How long one sample looks. Kernel CPU times tick in 10 ms here, so a quarter of a second resolves about 4 %.
pub const WINDOW: Duration = Duration::from_millis(250);

/// Foreign load, in CPUs, up to which a machine counts as quiet, per logical CPU (0.15 on two CPUs).
const QUIET_PER_CPU: f64 = 0.075;

/// What others did with the CPUs over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// CPUs kept busy by others, stolen time included; `None` if the kernel does not say, which is never quiet.
    pub foreign_cpus: Option<f64>,
    /// CPUs' worth of time that the hypervisor gave to other guests, part of `foreign_cpus`.
    pub stolen_cpus: f64,
    /// Logical CPUs.
    pub cpus: u32,
    /// Length of the window in milliseconds.
    pub window_ms: u64,
    /// How long [`wait`] waited in all, in milliseconds.
    pub waited_ms: u64,
    /// The busiest foreign process, if one stood out.
    pub busiest: Option<Busy>,
}

/// A process that takes CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Process id.
    pub pid: u32,
    /// Its name as the kernel shows it.
    pub name: String,
    /// CPUs it kept busy.
    pub cpus: f64,
}

impl Load {
    /// Whether the foreign load is small enough to measure beside.
    pub fn is_quiet(&self) -> bool {
        self.foreign_cpus
            .is_some_and(|foreign| foreign <= QUIET_PER_CPU * f64::from(self.cpus))
    }

    /// The load in words, for codes such as `ambiguous/machine-busy`.
    pub fn describe(&self) -> String {
        let Some(foreign) = self.foreign_cpus else {
            return "load unknown".to_owned();
        };
        let mut text = format!("{foreign:.2} of {} CPUs busy with other work", self.cpus);
        if self.stolen_cpus >= 0.01 {
            text.push_str(&format!(
                ", {:.2} of it stolen by the hypervisor",
                self.stolen_cpus
            ));
        }
        if let Some(busy) = &self.busiest {
            text.push_str(&format!(
                "; busiest: {} (pid {}, {:.2} CPUs)",
                busy.name, busy.pid, busy.cpus
            ));
        }
        text
    }
}

/// Samples the load over `window`. This process, `own` and all their descendants count as ours.
pub fn sample(window: Duration, own: &[u32]) -> Load {
    let before = Snapshot::take(Path::new("/proc"));
    let started = Instant::now();
    thread::sleep(window);
    let after = Snapshot::take(Path::new("/proc"));
    let mut roots = own.to_vec();
    roots.push(std::process::id());
    difference(&before, &after, started.elapsed(), &roots)
}

/// Waits until the machine is quiet, at most `limit`, and says what the load was in the last window.
pub fn wait(limit: Duration) -> Load {
    wait_excluding(limit, &[])
}

/// As [`wait`], with further processes (and their descendants) that count as ours.
pub fn wait_excluding(limit: Duration, own: &[u32]) -> Load {
    let started = Instant::now();
    loop {
        let mut load = sample(WINDOW, own);
        load.waited_ms = millis(started.elapsed());
        // Without numbers waiting cannot help.
        if load.is_quiet() || load.foreign_cpus.is_none() || started.elapsed() + WINDOW > limit {
            return load;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// CPU times at one moment, in seconds.
#[derive(Debug, Default, Clone, PartialEq)]
struct Snapshot {
    busy: Option<f64>,
    stolen: f64,
    cpus: u32,
    processes: BTreeMap<u32, Process>,
}

#[derive(Debug, Clone, PartialEq)]
struct Process {
    parent: u32,
    name: String,
    /// Own time and that of children already waited for, so that short-lived children are not lost.
    seconds: f64,
    started: u64,
}

impl Snapshot {
    fn take(proc: &Path) -> Self {
        let ticks = ticks_per_second();
        let mut snapshot = std::fs::read_to_string(proc.join("stat"))
            .map(|text| Self::from_stat(&text, ticks))
            .unwrap_or_default();
        for entry in std::fs::read_dir(proc).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            if let Ok(text) = std::fs::read_to_string(entry.path().join("stat"))
                && let Some(process) = Process::parse(&text, ticks)
            {
                snapshot.processes.insert(pid, process);
            }
        }
        snapshot
    }

    /// Reads `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); guest time is part of user.
    fn from_stat(text: &str, ticks: f64) -> Self {
        let numbers = |line: &str| -> Vec<f64> {
            line.split_whitespace()
                .skip(1)
                .map_while(|word| word.parse().ok())
                .collect()
        };
        let total = text
            .lines()
            .find(|line| line.starts_with("cpu "))
            .map(numbers)
            .unwrap_or_default();
        let cpus = text.lines().filter(|line| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        let at = |index: usize| total.get(index).copied().unwrap_or(0.0) / ticks;
        Self {
            busy: (total.len() >= 4).then(|| at(0) + at(1) + at(2) + at(5) + at(6) + at(7)),
            stolen: at(7),
            cpus: u32::try_from(cpus.count()).unwrap_or(1).max(1),
            processes: BTreeMap::new(),
        }
    }

    /// Every process that is one of `roots` or descends from one.
    fn family(&self, roots: &[u32]) -> BTreeSet<u32> {
        let mut family: BTreeSet<u32> = roots.iter().copied().collect();
        loop {
            let before = family.len();
            for (pid, process) in &self.processes {
                if family.contains(&process.parent) {
                    family.insert(*pid);
                }
            }
            if family.len() == before {
                return family;
            }
        }
    }
}

impl Process {
    /// Reads `/proc/<pid>/stat`. The name stands in parentheses and may itself hold spaces and parentheses.
    fn parse(text: &str, ticks: f64) -> Option<Self> {
        let open = text.find('(')?;
        let close = text.rfind(')')?;
        let name = text.get(open + 1..close)?.to_owned();
        let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
        // Fields 14 to 17 of proc(5) are utime, stime, cutime, cstime; the list begins with field 3.
        let time = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            name,
            seconds: (time(14)? + time(15)? + time(16)? + time(17)?) / ticks,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

fn difference(before: &Snapshot, after: &Snapshot, window: Duration, roots: &[u32]) -> Load {
    let seconds = window.as_secs_f64().max(1e-3);
    let mut family = after.family(roots);
    family.extend(before.family(roots));
    let mut own = 0.0;
    let mut busiest: Option<Busy> = None;
    for (pid, process) in &after.processes {
        let earlier = before
            .processes
            .get(pid)
            .filter(|earlier| earlier.started == process.started);
        let used = (process.seconds - earlier.map_or(0.0, |earlier| earlier.seconds)).max(0.0) / seconds;
        if family.contains(pid) {
            own += used;
        } else if used >= 0.05 && busiest.as_ref().is_none_or(|busy| used > busy.cpus) {
            busiest = Some(Busy {
                pid: *pid,
                name: process.name.clone(),
                cpus: used,
            });
        }
    }
    // A child of ours that was waited for within the window moves its whole life into its parent's time.
    for pid in family.iter().filter(|pid| !after.processes.contains_key(pid)) {
        own -= before.processes.get(pid).map_or(0.0, |process| process.seconds) / seconds;
    }
    let own = own.max(0.0);
    let foreign = match (before.busy, after.busy) {
        (Some(first), Some(second)) => Some(((second - first) / seconds - own).max(0.0)),
        _ => None,
    };
    Load {
        foreign_cpus: foreign,
        stolen_cpus: ((after.stolen - before.stolen) / seconds).max(0.0),
        cpus: after.cpus.max(1),
        window_ms: millis(window),
        waited_ms: 0,
        busiest,
    }
}

/// The unit of CPU times in /proc. It is 100 on every Linux architecture that runs this program, by its user ABI.
fn ticks_per_second() -> f64 {
    100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  1000 0 500 8000 0 0 0 10 0 0\ncpu0 500 0 250 4000 0 0 0 5 0 0\ncpu1 500 0 250 4000 0 0 0 5 0 0\n";
    const AFTER: &str = "cpu  1090 0 510 8080 0 0 0 20 0 0\ncpu0 545 0 255 4040 0 0 0 10 0 0\ncpu1 545 0 255 4040 0 0 0 10 0 0\n";

    fn process(parent: u32, seconds: f64) -> Process {
        Process {
            parent,
            name: "p".to_owned(),
            seconds,
            started: 1,
        }
    }

    #[test]
    fn own_processes_and_their_descendants_are_not_foreign() {
        let mut before = Snapshot::from_stat(BEFORE, 100.0);
        let mut after = Snapshot::from_stat(AFTER, 100.0);
        before.processes = [(7, process(1, 1.0)), (8, process(7, 0.0)), (9, process(1, 5.0))].into();
        after.processes = [(7, process(1, 1.2)), (8, process(7, 0.5)), (9, process(1, 5.3))].into();
        let load = difference(&before, &after, Duration::from_secs(1), &[7]);
        assert_eq!(load.cpus, 2);
        // 0.9 user + 0.1 system + 0.1 stolen, less 0.7 of ours.
        assert!((load.foreign_cpus.unwrap() - 0.4).abs() < 1e-9, "{load:?}");
        assert!((load.stolen_cpus - 0.1).abs() < 1e-9);
        assert_eq!(load.busiest.as_ref().map(|busy| busy.pid), Some(9));
        assert!(!load.is_quiet());
    }

    #[test]
    fn a_reused_pid_does_not_inherit_the_time_of_its_predecessor() {
        let mut before = Snapshot::from_stat(BEFORE, 100.0);
        let mut after = Snapshot::from_stat(AFTER, 100.0);
        before.processes = [(9, process(1, 500.0))].into();
        after.processes = [(
            9,
            Process {
                started: 2,
                ..process(1, 0.25)
            },
        )]
        .into();
        let load = difference(&before, &after, Duration::from_secs(1), &[]);
        assert!((load.busiest.unwrap().cpus - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_child_that_ended_within_the_window_counts_only_for_its_time_in_it() {
        let mut before = Snapshot::from_stat(BEFORE, 100.0);
        let mut after = Snapshot::from_stat(AFTER, 100.0);
        before.processes = [(7, process(1, 1.0)), (8, process(7, 30.0))].into();
        after.processes = [(7, process(1, 31.25))].into();
        let load = difference(&before, &after, Duration::from_secs(1), &[7]);
        assert!((load.foreign_cpus.unwrap() - 0.85).abs() < 1e-9, "{load:?}");
    }

    #[test]
    fn an_unknown_load_is_never_quiet_and_waiting_ends_at_once() {
        let unknown = difference(&Snapshot::default(), &Snapshot::default(), WINDOW, &[]);
        assert_eq!(unknown.foreign_cpus, None);
        assert!(!unknown.is_quiet());
        assert_eq!(unknown.describe(), "load unknown");
    }

    #[test]
    fn names_with_parentheses_are_parsed() {
        let text = "42 (a (b) c) S 7 42 42 0 -1 4194304 100 0 0 0 30 20 10 5 20 0 1 0 12345 0 0";
        let process = Process::parse(text, 100.0).unwrap();
        assert_eq!(
            (process.parent, process.name.as_str(), process.started),
            (7, "a (b) c", 12345)
        );
        assert!((process.seconds - 0.65).abs() < 1e-9);
        assert_eq!(Process::parse("42 (x", 100.0), None);
    }

    #[test]
    fn a_busy_child_of_ours_is_not_foreign_on_the_real_machine() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let with = sample(Duration::from_millis(300), &[]);
        child.kill().unwrap();
        child.wait().unwrap();
        if let Some(busy) = &with.busiest {
            assert_ne!(busy.pid, child.id());
        }
        assert!(with.foreign_cpus.is_some());
    }

    #[test]
    fn waiting_respects_its_limit() {
        let started = Instant::now();
        let load = wait(Duration::from_millis(600));
        assert!(started.elapsed() < Duration::from_secs(3));
        assert!(load.window_ms >= 200);
    }
}
