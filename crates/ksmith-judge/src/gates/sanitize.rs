//! Gate `sanitize`: AddressSanitizer with UndefinedBehaviorSanitizer, and ThreadSanitizer for kernels with threads.
//!
//! A program of its own around the candidate's sources, because the sanitizers want to be first in their process. Every
//! buffer is its own allocation of exactly the promised size and alignment, so that a read-modify-write just before a
//! buffer, which guard pages cannot see, ends in a red zone. Only visible cases run here: reports may be shown.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ksmith_box::{BoxSpec, Ended, Limits, Profile};
use ksmith_ledger::Gate;
use ksmith_task::{Bound, Candidate, DType};
use serde_json::json;

use super::context::{Code, End, GateEnd, Scoring};
use super::judgement::judge;
use crate::cases::{Case, ScalarDraw, gather};
use crate::codes::code;
use crate::judge::JudgeError;
use crate::number;

/// Limit of one sanitized run: these programs are 5 to 50 times slower.
const WALL: Duration = Duration::from_secs(20);
/// A kernel is told nothing of the sanitizers and cannot ask them to look away; and versions of a function would be chosen
/// before a sanitizer is ready.
const UNSEEN: [&str; 10] = [
    "-U__SANITIZE_ADDRESS__",
    "-U__SANITIZE_THREAD__",
    "-Dno_sanitize(...)=",
    "-D__no_sanitize__(...)=",
    "-Dno_sanitize_address=",
    "-D__no_sanitize_address__=",
    "-Dno_sanitize_thread=",
    "-Dno_sanitize_undefined=",
    "-Dno_address_safety_analysis=",
    "-Dtarget_clones(...)=",
];
/// The exit code that the sanitizers are told to use.
const REPORTED: i32 = 99;

pub(crate) fn sanitize(scoring: &mut Scoring<'_>) -> GateEnd {
    let built = scoring.library()?.clone();
    if scoring.worker.device.is_some() {
        return Ok(End::Skipped(
            "compute-sanitizer is not run by this version; the tier says `unsanitized`",
        ));
    }
    let Code::Native {
        library,
        entry,
        folder,
    } = &built.code
    else {
        return Err(JudgeError::Unsupported("no sanitizer for this tier".to_owned()));
    };
    let native = Native {
        candidate: &built.candidate,
        digest: library.digest.short(),
        folder: folder.path(),
    };
    let Some(first) = scoring.tiny.first() else {
        return Ok(End::Skipped("no visible case is small enough"));
    };
    let driver = driver(&first.spec.bound, entry);
    let mut ran = Vec::new();
    let threads = uses_threads(&built.candidate);
    let kinds: &[(&str, &[&str])] = &[
        (
            "address",
            &[
                "-fsanitize=address,undefined",
                "-fno-sanitize=alignment,shift-base,object-size",
                "-fno-sanitize-recover=all",
                // Stack memory that nobody set holds nonsense instead of lucky zeros; so does the heap, below.
                "-ftrivial-auto-var-init=pattern",
            ],
        ),
        ("thread", &["-fsanitize=thread"]),
    ];
    for (kind, flags) in kinds {
        // libgomp's barriers are invisible to ThreadSanitizer: honest OpenMP kernels would be wronged.
        if *kind == "thread" && threads != Threads::Posix {
            continue;
        }
        let program = match compile(scoring, &native, &driver, kind, flags)? {
            Ok(program) => program,
            Err(log) => {
                // It compiled without the sanitizer: this toolchain lacks its run-time library, or has no room for it.
                let text = format!("the {kind} sanitizer build failed: {log}");
                return Err(JudgeError::Unsupported(text));
            }
        };
        for case in scoring.tiny.clone() {
            if let Some(end) = run(scoring, &program, &case, kind)? {
                return Ok(end);
            }
        }
        ran.push(json!({ "kind": kind, "cases": scoring.tiny.len() }));
    }
    Ok(End::Pass(json!({ "ran": ran })))
}

/// The sources of a candidate for this CPU, as they were compiled.
struct Native<'a> {
    candidate: &'a Candidate,
    digest: String,
    folder: &'a Path,
}

/// What an address-space limit has to do with it, from the text of `/proc/self/limits`.
fn address_limit(limits: &str) -> Option<String> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    let soft = line
        .split_whitespace()
        .next()
        .filter(|limit| *limit != "unlimited")?;
    Some(format!(
        " (this process may use {soft} bytes of addresses, `ulimit -v`, and sanitizers reserve terabytes: lift that limit, or \
         limit memory by a control group instead)"
    ))
}

#[derive(PartialEq, Eq)]
enum Threads {
    None,
    OpenMp,
    Posix,
}

fn uses_threads(candidate: &Candidate) -> Threads {
    let openmp = candidate
        .cpu()
        .is_some_and(|program| program.flags.iter().any(|flag| flag == "-fopenmp"));
    let posix = candidate.sources.iter().any(|source| {
        ["pthread", "threads.h", "std::thread", "<thread>"]
            .iter()
            .any(|word| source.text.contains(word))
    });
    match (openmp, posix) {
        (true, _) => Threads::OpenMp,
        (false, true) => Threads::Posix,
        (false, false) => Threads::None,
    }
}

/// A program that reads buffers from descriptor 3, calls the entry, and writes the outputs to descriptor 4.
fn driver(bound: &Bound, entry: &str) -> String {
    let mut prototype = Vec::new();
    let mut arguments = Vec::new();
    let count = bound
        .tensors
        .iter()
        .filter(|tensor| tensor.inplace.is_none())
        .count();
    for index in 0..count {
        prototype.push("void *".to_owned());
        arguments.push(format!("buffer[{index}]"));
    }
    let mut word = 3 * count;
    for scalar in &bound.scalars {
        let (kind, value) = match scalar.dtype {
            DType::F64 => ("double", format!("as_double(w[{word}])")),
            DType::F32 => ("float", format!("(float)as_double(w[{word}])")),
            DType::F16 | DType::Bf16 | DType::I16 => ("uint16_t", format!("(uint16_t)w[{word}]")),
            DType::F8e4m3 | DType::F8e5m2 | DType::U8 | DType::I8 | DType::Bool => {
                ("uint8_t", format!("(uint8_t)w[{word}]"))
            }
            DType::I32 => ("int32_t", format!("(int32_t)w[{word}]")),
            DType::I64 => ("int64_t", format!("(int64_t)w[{word}]")),
        };
        prototype.push(kind.to_owned());
        arguments.push(value);
        word += 1;
    }
    for _ in &bound.axes {
        prototype.push("int64_t".to_owned());
        arguments.push(format!("(int64_t)w[{word}]"));
        word += 1;
    }
    let mut text = String::new();
    let _ = write!(
        text,
        "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         extern void {entry}({});\n\
         static double as_double(uint64_t bits) {{ double d; memcpy(&d, &bits, 8); return d; }}\n\
         static void all(int fd, void *to, size_t n) {{\n\
         \x20 char *at = (char *)to;\n\
         \x20 while (n) {{ ssize_t got = read(fd, at, n); if (got <= 0) _exit(70); at += got; n -= (size_t)got; }}\n}}\n\
         static void put(int fd, const void *from, size_t n) {{\n\
         \x20 const char *at = (const char *)from;\n\
         \x20 while (n) {{ ssize_t got = write(fd, at, n); if (got <= 0) _exit(71); at += got; n -= (size_t)got; }}\n}}\n\
         int main(void) {{\n\
         \x20 static uint64_t w[{words}];\n\
         \x20 void *buffer[{slots}];\n\
         \x20 (void)as_double;\n\
         \x20 all(3, w, sizeof w);\n\
         \x20 for (int i = 0; i < {count}; i++) {{\n\
         \x20   size_t bytes = (size_t)w[3 * i], align = (size_t)w[3 * i + 1];\n\
         \x20   if (posix_memalign(&buffer[i], align < 8 ? 8 : align, bytes)) _exit(72);\n\
         \x20   all(3, buffer[i], bytes);\n\
         \x20 }}\n\
         \x20 {entry}({});\n\
         \x20 for (int i = 0; i < {count}; i++) {{ if (w[3 * i + 2]) put(4, buffer[i], (size_t)w[3 * i]); free(buffer[i]); }}\n\
         \x20 return 0;\n}}\n",
        if prototype.is_empty() {
            "void".to_owned()
        } else {
            prototype.join(", ")
        },
        arguments.join(", "),
        words = word.max(1),
        slots = count.max(1),
    );
    text
}

fn compile(
    scoring: &Scoring<'_>,
    built: &Native<'_>,
    driver: &str,
    kind: &str,
    sanitizer: &[&str],
) -> Result<Result<PathBuf, String>, JudgeError> {
    let work = scoring.scratch.join(format!("sanitize-{}-{kind}", built.digest));
    fs::create_dir_all(&work).map_err(JudgeError::io("could not make a folder for the sanitizer build"))?;
    fs::set_permissions(&work, fs::Permissions::from_mode(0o777))
        .map_err(JudgeError::io("could not open the folder of the sanitizer build"))?;
    let program = work.join("program");
    if program.is_file() {
        return Ok(Ok(program));
    }
    let source = work.join("driver.c");
    fs::write(&source, driver).map_err(JudgeError::io("could not write the sanitizer's driver"))?;
    let folder = built.folder;
    let flags = built
        .candidate
        .cpu()
        .map(|program| program.flags.clone())
        .unwrap_or_default();
    let compiled = |path: &Path| {
        matches!(
            path.extension().and_then(|extension| extension.to_str()),
            Some("c" | "cc" | "cpp" | "cxx")
        )
    };
    let sources = built
        .candidate
        .sources
        .iter()
        .filter(|source| compiled(&source.path));
    let spec = BoxSpec::program("/usr/bin/gcc", Profile::Compiler)
        .args(flags)
        .args(scoring.instance.defines())
        .args(UNSEEN)
        .args(["-O1", "-g", "-fno-omit-frame-pointer", "-pipe"])
        .args(sanitizer.iter().copied())
        .arg("-I")
        .arg(folder.display().to_string())
        .arg("-o")
        .arg(program.display().to_string())
        .arg(source.display().to_string())
        .args(sources.map(|source| folder.join(&source.path).display().to_string()))
        .args(["-lm", "-lstdc++", "-lpthread"])
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", &work.display().to_string())
        .cwd(&work)
        .system()
        .read_only(folder)
        .read_write(&work)
        .wall(Duration::from_secs(60));
    let finished = ksmith_box::run(&confined(scoring, spec))?;
    if finished.ended.success() {
        return Ok(Ok(program));
    }
    Ok(Err(String::from_utf8_lossy(&finished.stderr)
        .chars()
        .take(2000)
        .collect()))
}

fn confined(scoring: &Scoring<'_>, spec: BoxSpec) -> BoxSpec {
    let spec = spec.least(scoring.worker.least);
    if scoring.worker.unsandboxed {
        spec.unsandboxed()
    } else {
        spec
    }
}

/// Runs one case; a finding ends the gate.
fn run(scoring: &Scoring<'_>, program: &Path, case: &Case, kind: &str) -> Result<Option<End>, JudgeError> {
    let bound = &case.spec.bound;
    let file = || tempfile::tempfile().map_err(JudgeError::io("could not make a file for the sanitizer run"));
    let (mut input, mut output) = (file()?, file()?);
    input
        .write_all(&request(case))
        .and_then(|()| input.rewind())
        .map_err(JudgeError::io("could not write the sanitizer's case"))?;
    let back = output
        .try_clone()
        .map_err(JudgeError::io("could not share a file"))?;
    let spec = BoxSpec::program(program, Profile::Reference)
        .system()
        .read_only(program)
        .proc_view()
        .fd(OwnedFd::from(input))
        .fd(OwnedFd::from(back))
        .env(
            "ASAN_OPTIONS",
            &format!("detect_leaks=0:exitcode={REPORTED}:allocator_may_return_null=1:hard_rss_limit_mb=4096:max_malloc_fill_size=1073741824"),
        )
        .env("UBSAN_OPTIONS", &format!("exitcode={REPORTED}"))
        .env("TSAN_OPTIONS", &format!("exitcode={REPORTED}:halt_on_error=1"))
        .env("OMP_NUM_THREADS", &scoring.worker.threads.to_string())
        .limits(Limits {
            wall: Some(WALL),
            cpu: Some(WALL),
            memory_bytes: Some(4 << 30),
            // The sanitizers reserve terabytes of addresses for their shadow; ThreadSanitizer wants no limit at all.
            address_space_bytes: Some(u64::MAX),
            ..Limits::default()
        });
    let finished = ksmith_box::run(&confined(scoring, spec))?;
    let report: String = String::from_utf8_lossy(&finished.stderr)
        .chars()
        .take(3000)
        .collect();
    let fail = |cause: &str| {
        Ok(Some(End::Fail(
            code(Gate::Sanitize, cause),
            json!({ "report": report }),
        )))
    };
    match &finished.ended {
        Ended::Exited(0) => {}
        // The sanitizer could not lay out its shadow on this kernel: no statement about the candidate.
        _ if [
            "unexpected memory mapping",
            "failed to allocate",
            "setrlimit() failed",
            "ReserveShadowMemoryRange failed",
        ]
        .iter()
        .any(|words| report.contains(words)) =>
        {
            // A check that did not run is no pass.
            let limit = fs::read_to_string("/proc/self/limits").unwrap_or_default();
            return Err(JudgeError::Unsupported(format!(
                "the {kind} sanitizer cannot start here{}: {report}",
                address_limit(&limit).unwrap_or_default()
            )));
        }
        Ended::TimedOut => return fail("timeout"),
        Ended::OutOfMemory => return fail("out-of-memory"),
        Ended::ForbiddenCall(name) => {
            let evidence = json!({ "call": name });
            return Ok(Some(End::Fail(code(Gate::Sanitize, "forbidden-call"), evidence)));
        }
        _ if report.contains("WARNING: ThreadSanitizer") => return fail("race"),
        _ if report.contains("AddressSanitizer") => return fail("address"),
        _ if report.contains("runtime error:") => return fail("undefined"),
        Ended::Signal(_) => return fail("crash"),
        Ended::Exited(_) | Ended::Killed => return fail("exited"),
    }
    output
        .rewind()
        .map_err(JudgeError::io("could not read the sanitizer's outputs"))?;
    let outputs = read_outputs(bound, &mut output)?;
    let judgement = judge(case, &outputs, &scoring.oracle.checkers())?;
    if judgement.failed.is_some() && kind == "address" {
        return Ok(Some(super::context::wrong(Gate::Sanitize, case, &judgement)));
    }
    Ok(None)
}

/// Sizes, scalars and axes, then the bytes of every buffer.
fn request(case: &Case) -> Vec<u8> {
    let bound = &case.spec.bound;
    let mut words: Vec<u64> = Vec::new();
    let mut bytes = Vec::new();
    let inputs = bound.inputs().count();
    for (index, tensor) in bound
        .tensors
        .iter()
        .enumerate()
        .filter(|(_, tensor)| tensor.inplace.is_none())
    {
        let shared = bound.tensors.iter().any(|other| other.inplace == Some(index));
        words.extend([
            tensor.extent_bytes as u64,
            tensor.align as u64,
            u64::from(index >= inputs || shared),
        ]);
        match case.storage.get(index) {
            Some(storage) if index < inputs => bytes.extend_from_slice(storage),
            _ => bytes.resize(bytes.len() + tensor.extent_bytes, crate::cases::POISONS[0]),
        }
    }
    for scalar in &case.inputs.scalars {
        words.push(match scalar {
            ScalarDraw::Real(DType::F64 | DType::F32, value) => value.to_bits(),
            ScalarDraw::Real(dtype, value) => {
                let mut narrow = [0; 8];
                number::encode_reals(*dtype, &[*value], &mut narrow[..dtype.bytes()]);
                u64::from_le_bytes(narrow)
            }
            ScalarDraw::Whole(_, value) => *value as u64,
        });
    }
    words.extend(bound.axes.iter().map(|(_, size)| *size as u64));
    if words.is_empty() {
        words.push(0);
    }
    words
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .chain(bytes)
        .collect()
}

fn read_outputs(bound: &Bound, file: &mut File) -> Result<Vec<Vec<u8>>, JudgeError> {
    let inputs = bound.inputs().count();
    let mut written: Vec<(usize, Vec<u8>)> = Vec::new();
    for (index, tensor) in bound
        .tensors
        .iter()
        .enumerate()
        .filter(|(_, tensor)| tensor.inplace.is_none())
    {
        let shared = bound.tensors.iter().any(|other| other.inplace == Some(index));
        if index < inputs && !shared {
            continue;
        }
        let mut storage = vec![0; tensor.extent_bytes];
        file.read_exact(&mut storage)
            .map_err(JudgeError::io("the sanitized program wrote too little"))?;
        written.push((index, storage));
    }
    let outputs = bound
        .tensors
        .iter()
        .enumerate()
        .skip(inputs)
        .filter_map(|(index, tensor)| {
            let owner = tensor.inplace.unwrap_or(index);
            let (_, storage) = written.iter().find(|(written, _)| *written == owner)?;
            Some(gather(tensor, storage))
        });
    Ok(outputs.collect())
}

#[cfg(test)]
mod tests {
    use super::address_limit;

    #[test]
    fn a_limit_on_addresses_is_named_and_none_is_not() {
        let limited = "Max cpu time  unlimited unlimited seconds\nMax address space         16384000000          unlimited            bytes\n";
        let text = address_limit(limited).unwrap();
        assert!(
            text.contains("16384000000") && text.contains("ulimit -v"),
            "{text}"
        );
        assert_eq!(address_limit(&limited.replace("16384000000", "unlimited")), None);
        assert_eq!(address_limit(""), None);
    }
}
