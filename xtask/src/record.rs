//! Records A/A timings with real workers: four arms with the same bytes, every output checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use ksmith_judge::bench::simulation::Recording;
use ksmith_judge::bench::{
    Arm, BaselineArm, CaseId, Distribution, Fault, FlagControlArm, Host, Load, OrderSeed, Plan, Role,
    Settings, Stage, TimedCall, Workload, measure,
};
use ksmith_machine::quiet;
use ksmith_worker::build::{self, Build, BuildOptions, Sources};
use ksmith_worker::cpu::{Access, CallOptions, Edge, Layout, Placement, Worker, WorkerSpec};

use crate::{Failure, delay};

/// Elements of the delay kernel.
const ELEMENTS: usize = 16;

#[derive(Args)]
pub(crate) struct RecordArgs {
    /// Length of the kernel in microseconds
    #[arg(long, default_value_t = 100)]
    microseconds: u32,
    /// Process sets to record
    #[arg(long, default_value_t = 24)]
    sets: u32,
    /// Name of the recording; the file is NAME.txt
    #[arg(long)]
    name: String,
    /// Folder of the recordings
    #[arg(long, default_value = "crates/ksmith-judge/testdata/aa")]
    folder: PathBuf,
}

pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let state = tempfile::tempdir()?;
    let folder = state.path().join("kernel");
    delay::write_candidate(&folder, delay::steps(args.microseconds))?;
    let mut host = DelayHost {
        library: library(&folder, state.path())?,
        started: Instant::now(),
    };
    let settings = Settings {
        // Never stops early, never turns away and never confirms: a recording, not a judgement.
        floor: -0.5,
        target_gain: 1e6,
        min_pairs: args.sets * Settings::default().rounds_per_set,
        min_sets: args.sets,
        stage_seconds: 120.0,
        noise_limit: 10.0,
        unpreempted: 0.0,
        ..Settings::default()
    };
    let plan = Plan {
        workloads: vec![Workload {
            name: "timed".to_owned(),
            weight: 1.0,
            distributions: vec![Distribution {
                name: "uniform".to_owned(),
                cases: 10_000,
            }],
        }],
        baseline: BaselineArm::Own,
        flag_control: FlagControlArm::Absent,
        settings,
    };
    let mut seed = [0; 32];
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)?
        .as_nanos()
        .to_le_bytes();
    seed[..nanos.len()].copy_from_slice(&nanos);
    let report = measure(&mut host, &plan, OrderSeed(seed));
    let stages: Vec<_> = std::iter::once(&report.decision)
        .chain(&report.confirmation)
        .collect();
    let recording = Recording::from_stages(&args.name, stages.iter().map(|stage| &stage.record));
    fs::create_dir_all(&args.folder)?;
    let file = args.folder.join(format!("{}.txt", args.name));
    fs::write(&file, recording.to_text())?;
    println!(
        "{}: {} sets, ended as {:?}",
        file.display(),
        recording.sets(),
        report.finding
    );
    for stage in stages {
        println!(
            "{:?}: {:.2} s, load {:?}, {:.1} % unpreempted, A/A spread {:.2} %, A/A {:?}",
            stage.stage,
            stage.record.seconds,
            stage.record.load,
            stage.unpreempted * 100.0,
            stage.looks.last().map_or(0.0, |look| look.control_spread) * 100.0,
            stage.control,
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn library(folder: &Path, state: &Path) -> Result<PathBuf, Failure> {
    let steps = fs::read_to_string(folder.join("candidate.toml"))?;
    let define = steps
        .split('"')
        .find(|word| word.starts_with("-DSTEPS="))
        .ok_or("the manifest defines no steps")?;
    let sources = Sources {
        folder: folder.to_owned(),
        files: vec!["kernel.c".to_owned()],
        entry: "delay".to_owned(),
        flags: vec!["-O2".to_owned(), define.to_owned()],
    };
    match build::compile(&sources, &BuildOptions::new(&state.join("cache")))? {
        Build::Library(library) => Ok(library.path),
        Build::Refused(refused) => Err(format!("{}: {}", refused.code, refused.stderr).into()),
    }
}

struct DelayHost {
    library: PathBuf,
    started: Instant,
}

struct DelayArm {
    worker: Worker,
}

fn broken(error: impl std::fmt::Display) -> Fault {
    Fault::Judge(error.to_string())
}

/// The input of one case and element: any mix of the numbers that stays within the kernel's domain.
fn input(case: CaseId, element: usize) -> f64 {
    let mixed = (u64::from(case.index) * 31 + element as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    0.25 + (mixed >> 40) as f64 / (1_u64 << 24) as f64 * 3.75
}

impl Arm for DelayArm {
    fn call(&mut self, case: CaseId) -> Result<TimedCall, Fault> {
        for (element, bytes) in self.worker.input_mut(0, 0).chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&input(case, element).to_le_bytes());
        }
        self.worker.input_mut(0, 1).fill(0xff);
        let options = CallOptions {
            deadline: Duration::from_secs(1),
            early: Vec::new(),
        };
        let call = self.worker.call(0, &options).map_err(broken)?;
        for (element, bytes) in self.worker.output(0, 1).chunks_exact(8).enumerate() {
            let bytes: [u8; 8] = bytes.try_into().map_err(broken)?;
            if (f64::from_le_bytes(bytes) - input(case, element).sqrt()).abs() > 1e-14 {
                return Err(Fault::Judge(format!("element {element} of {case:?} is wrong")));
            }
        }
        Ok(TimedCall {
            ns: call.ns,
            judge_preempted: call.judge_preempted,
            worker_preempted: call.worker_preempted,
        })
    }

    fn cpu_time(&mut self) -> Option<Duration> {
        self.worker.cpu_time()
    }
}

impl Host for DelayHost {
    type Arm = DelayArm;

    fn begin(&mut self, _stage: Stage) -> Result<(), Fault> {
        Ok(())
    }

    fn start(&mut self, _role: Role, _set: u32) -> Result<DelayArm, Fault> {
        let mut worker = Worker::start(&WorkerSpec::new(&self.library, "delay")).map_err(broken)?;
        let placement = |name: &str, access| Placement {
            name: name.to_owned(),
            bytes: (ELEMENTS * 8) as u64,
            align: 64,
            access,
            edge: Edge::End,
        };
        let layout = Layout {
            slots: 1,
            placements: vec![placement("x", Access::Input), placement("y", Access::Output)],
            scalars: Vec::new(),
            axes: vec![ELEMENTS as i64],
        };
        worker.layout(&layout).map_err(broken)?;
        Ok(DelayArm { worker })
    }

    fn quiet(&mut self, limit: Duration) -> Load {
        let load = quiet::wait(limit);
        Load {
            other_cpus: load.foreign_cpus,
            waited_s: load.waited_ms as f64 / 1000.0,
            quiet: load.is_quiet(),
        }
    }

    fn now(&mut self) -> Duration {
        self.started.elapsed()
    }
}
