//! The naive evaluator: what the field does, so that each cheat can show that it would win there.
//!
//! It shares its process with the candidate, uses one Gaussian input from a fixed seed for test and timing, keeps its
//! outputs, believes its own clock, the text that the process prints and its exit code, and compares the first output
//! with `allclose(1e-2)`, or at the task's tolerance where that is wider. It only ever runs boxed, with limits: what a
//! cheat does to the machine ends there, and a call that the box forbids reads as a crash.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxSpec, Ended, Limits, Profile};
use ksmith_judge::cases::{Plan, ScalarDraw, storage};
use ksmith_task::{Backend, Bound, Candidate, DType, Role, Task};

use super::corpus::{Naive, Target};
use crate::Failure;

/// A reported time below this share of the baseline's is a win.
const WIN: f64 = 0.9;
/// What `allclose` of the field allows.
const CLOSE: f64 = 1e-2;
/// Number of the one input, for want of a better seed.
const SEED: u64 = 42;

/// An evaluator for one task.
pub(crate) struct Evaluator {
    state: PathBuf,
    driver: String,
    request: Vec<u8>,
    expected: Vec<u8>,
    baseline_ns: f64,
    count: usize,
}

enum Said {
    Pass(f64),
    Fail,
    Hang,
}

impl Evaluator {
    pub(crate) fn open(target: &Target, state: &Path) -> Result<Self, Failure> {
        let task = Task::load(fs::canonicalize(target.folder())?)?;
        let instance = task
            .instances()
            .into_iter()
            .find(|instance| instance.id().contains(&target.types) || target.types.is_empty())
            .ok_or("no such instance")?;
        let specs = Plan::dev(&instance).workloads(SEED)?;
        let (_, spec) = specs
            .into_iter()
            .min_by_key(|(_, spec)| spec.bound.storage_bytes())
            .ok_or("the task has no workload")?;
        let drawn = spec.draw();
        let bound = (*spec.bound).clone();
        let mut words: Vec<u64> = Vec::new();
        let mut bytes = Vec::new();
        let inputs = bound.inputs().count();
        for (index, tensor) in bound.tensors.iter().enumerate() {
            words.push(tensor.extent_bytes as u64);
            match drawn.values.get(index) {
                Some(values) if index < inputs => bytes.extend(storage(tensor, values)),
                _ => bytes.resize(bytes.len() + tensor.extent_bytes, 0),
            }
        }
        for scalar in &drawn.scalars {
            words.push(match scalar {
                ScalarDraw::Real(_, value) => value.to_bits(),
                ScalarDraw::Whole(_, value) => value.cast_unsigned(),
            });
        }
        words.extend(bound.axes.iter().map(|(_, size)| size.cast_unsigned()));
        let request = words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .chain(bytes)
            .collect();
        let baseline = task
            .contract()
            .baseline
            .get(&Backend::Cpu)
            .map(|folder| task.dir().join(folder))
            .ok_or("the task has no baseline")?;
        let entry = Candidate::load(&baseline)?
            .cpu()
            .map(|program| program.entry.clone())
            .unwrap_or_default();
        let count = bound.outputs().next().map_or(0, |tensor| tensor.extent_bytes);
        let state = state.join(format!("naive-{}", target.task));
        open_folder(&state)?;
        let mut evaluator = Self {
            state,
            driver: driver(&bound, &entry),
            request,
            expected: Vec::new(),
            baseline_ns: f64::INFINITY,
            count,
        };
        evaluator.expected = vec![0; count];
        let (_, outputs) = evaluator.run(&baseline, "baseline")?;
        evaluator.expected = outputs;
        for _ in 0..3 {
            if let (Said::Pass(ns), _) = evaluator.run(&baseline, "baseline")? {
                evaluator.baseline_ns = evaluator.baseline_ns.min(ns);
            }
        }
        if !evaluator.baseline_ns.is_finite() {
            return Err("the naive evaluator does not accept the baseline".into());
        }
        Ok(evaluator)
    }

    /// What it says of a candidate; one that it cannot even build fails.
    pub(crate) fn judge(&mut self, folder: &Path) -> Result<Naive, Failure> {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (said, _) = self.run(folder, &name)?;
        Ok(match said {
            Said::Pass(ns) if ns < WIN * self.baseline_ns => Naive::Wins,
            Said::Pass(_) => Naive::Same,
            Said::Fail => Naive::Fails,
            Said::Hang => Naive::Hangs,
        })
    }

    fn run(&self, folder: &Path, name: &str) -> Result<(Said, Vec<u8>), Failure> {
        let nothing = Ok((Said::Fail, Vec::new()));
        let Ok(candidate) = Candidate::load(folder) else {
            return nothing;
        };
        let work = self.state.join(name);
        open_folder(&work)?;
        let program = work.join("program");
        if !program.is_file() {
            match self.build(&candidate, &work)? {
                Ended::Exited(0) => {}
                Ended::TimedOut | Ended::OutOfMemory => return Ok((Said::Hang, Vec::new())),
                _ => return nothing,
            }
        }
        let (mut input, mut output) = (tempfile::tempfile()?, tempfile::tempfile()?);
        input.write_all(&self.request)?;
        input.write_all(&self.expected)?;
        input.rewind()?;
        let spec = BoxSpec::program(&program, Profile::Reference)
            .system()
            .read_only(&program)
            .proc_view()
            .fd(OwnedFd::from(input))
            .fd(OwnedFd::from(output.try_clone()?))
            .limits(Limits {
                wall: Some(Duration::from_secs(6)),
                cpu: Some(Duration::from_secs(6)),
                memory_bytes: Some(1 << 30),
                file_bytes: Some(16 << 20),
                processes: Some(8),
                output_bytes: 4096,
                ..Limits::default()
            });
        let finished = ksmith_box::run(&spec)?;
        let text = String::from_utf8_lossy(&finished.stdout).into_owned();
        let said = match finished.ended {
            Ended::TimedOut | Ended::OutOfMemory | Ended::Killed => Said::Hang,
            // It believes what is printed, and the exit code.
            Ended::Exited(0) => text
                .lines()
                .rev()
                .find_map(|line| line.split_once("PASS"))
                .map_or(Said::Fail, |(_, time)| {
                    Said::Pass(
                        time.split_whitespace()
                            .next()
                            .and_then(|ns| ns.parse().ok())
                            .unwrap_or(1.0),
                    )
                }),
            Ended::Exited(_) | Ended::Signal(_) | Ended::ForbiddenCall(_) => Said::Fail,
        };
        output.rewind()?;
        let mut outputs = vec![0; self.count];
        let read = read_up_to(&mut output, &mut outputs)?;
        outputs.truncate(read);
        Ok((said, outputs))
    }

    fn build(&self, candidate: &Candidate, work: &Path) -> Result<Ended, Failure> {
        fs::write(work.join("driver.c"), &self.driver)?;
        let mut files = vec!["driver.c".to_owned()];
        for source in &candidate.sources {
            let path = work.join(&source.path);
            if let Some(parent) = path.parent() {
                open_folder(parent)?;
            }
            fs::write(&path, &source.text)?;
            let ending = source.path.extension().and_then(|ending| ending.to_str());
            if matches!(ending, Some("c" | "cc" | "cpp" | "cxx")) {
                files.push(source.path.display().to_string());
            }
        }
        let flags = candidate
            .cpu()
            .map(|program| program.flags.clone())
            .unwrap_or_default();
        let spec = BoxSpec::program("/usr/bin/gcc", Profile::Compiler)
            .args(flags)
            .args(["-w", "-pipe", "-o", "program"])
            .args(files)
            .args(["-lm", "-lstdc++", "-lpthread", "-ldl"])
            .env("PATH", "/usr/bin:/bin")
            .env("TMPDIR", &work.display().to_string())
            .cwd(work)
            .system()
            .read_write(work)
            .wall(Duration::from_secs(20));
        Ok(ksmith_box::run(&spec)?.ended)
    }
}

fn read_up_to(file: &mut File, to: &mut [u8]) -> std::io::Result<usize> {
    let mut at = 0;
    while at < to.len() {
        match file.read(&mut to[at..])? {
            0 => break,
            got => at += got,
        }
    }
    Ok(at)
}

fn open_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
    Ok(())
}

/// The evaluator's program: buffers from descriptor 3, three warm-up calls, ten timed ones, comparison, `PASS`.
fn driver(bound: &Bound, entry: &str) -> String {
    let count = bound.tensors.len();
    let inputs = bound.inputs().count();
    let mut prototype: Vec<&str> = vec!["void *"; count];
    let mut arguments: Vec<String> = (0..count).map(|index| format!("buffer[{index}]")).collect();
    let mut word = count;
    for scalar in &bound.scalars {
        let (kind, value) = match scalar.dtype {
            DType::F64 => ("double", format!("as_double(w[{word}])")),
            DType::F32 => ("float", format!("(float)as_double(w[{word}])")),
            _ => ("int64_t", format!("(int64_t)w[{word}]")),
        };
        prototype.push(kind);
        arguments.push(value);
        word += 1;
    }
    for _ in &bound.axes {
        prototype.push("int64_t");
        arguments.push(format!("(int64_t)w[{word}]"));
        word += 1;
    }
    let (kind, close) = bound.outputs().next().map_or(("float", CLOSE), |tensor| {
        let kind = match tensor.dtype {
            DType::F64 => "double",
            DType::I64 => "int64_t",
            DType::I32 => "int32_t",
            DType::I8 => "int8_t",
            DType::F32 => "float",
            _ => "uint8_t",
        };
        let close = match &tensor.role {
            Role::Output(rule) => rule.tolerance.atol.max(CLOSE),
            Role::Input(_) => CLOSE,
        };
        (kind, close)
    });
    let call = format!("{entry}({})", arguments.join(", "));
    let mut text = String::new();
    let _ = write!(
        text,
        "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <time.h>\n#include <unistd.h>\n\
         extern void {entry}({prototype});\n\
         static double as_double(uint64_t bits) {{ double d; memcpy(&d, &bits, 8); return d; }}\n\
         static void all(void *to, size_t n) {{\n\
         \x20 char *at = (char *)to;\n\
         \x20 while (n) {{ ssize_t got = read(3, at, n); if (got <= 0) exit(70); at += got; n -= (size_t)got; }}\n}}\n\
         static double now(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }}\n\
         int main(void) {{\n\
         \x20 static uint64_t w[{word}];\n\
         \x20 void *buffer[{count}];\n\
         \x20 (void)as_double;\n\
         \x20 all(w, sizeof w);\n\
         \x20 for (int i = 0; i < {count}; i++) {{ buffer[i] = aligned_alloc(64, (w[i] + 4159) / 64 * 64); all(buffer[i], w[i]); }}\n\
         \x20 {kind} *out = buffer[{inputs}], *want = malloc(w[{inputs}] + 64);\n\
         \x20 all(want, w[{inputs}]);\n\
         \x20 for (int i = 0; i < 3; i++) {call};\n\
         \x20 double from = now();\n\
         \x20 for (int i = 0; i < 10; i++) {call};\n\
         \x20 double each = (now() - from) / 10;\n\
         \x20 write(4, out, w[{inputs}]);\n\
         \x20 for (size_t i = 0; i < w[{inputs}] / sizeof *out; i++)\n\
         \x20   if (!(fabs((double)out[i] - (double)want[i]) <= {close} + {close} * fabs((double)want[i]))) {{ puts(\"FAIL\"); return 0; }}\n\
         \x20 printf(\"PASS %f\\n\", each);\n\
         \x20 return 0;\n}}\n",
        prototype = prototype.join(", "),
    );
    text
}
