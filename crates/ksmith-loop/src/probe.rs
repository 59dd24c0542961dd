//! Probes for whoever writes kernels: compile, prove. They leave no record and crown nothing.

use std::path::Path;

use ksmith_box::Level;
use ksmith_insight::cpu_profile::{CpuProfile, static_model};
use ksmith_insight::{Finding, x86};
use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_ledger::{Audited, GateOutcome, Verdict};
use ksmith_task::{Backend, Candidate, Digest, Instance, Task, chain};
use ksmith_worker::build::{Build, BuildOptions, Sources, compile};

use crate::arena::{Arena as _, ArenaError, JudgeArena, from_judge};
use crate::run::{absolute, choose, load};
use crate::{RunError, Sandbox, TypePick};

/// What `check` found.
#[derive(Debug, Clone)]
pub struct CheckOutcome {
    /// Stable `gate/cause` string of the failure, if one failed.
    pub code: Option<String>,
    /// The candidate's digest.
    pub digest: Digest,
    /// What policy or compiler say.
    pub log: String,
    /// Wall time of the compilation in milliseconds.
    pub ms: f64,
}

/// Loads a candidate, checks it against the policy and compiles it. Nothing of it is run; a GPU is not needed.
/// Private CUDA compilers are looked for under `toolchains`.
///
/// # Errors
/// When the contract or the folder is wrong, or nothing can be compiled here.
pub fn check(
    candidate: &Path,
    task: &Path,
    types: &[TypePick],
    toolchains: &Path,
    sandbox: Sandbox,
) -> Result<CheckOutcome, RunError> {
    let instance = first_instance(&load(task)?, types)?;
    let candidate = Candidate::load(absolute(candidate)).map_err(RunError::Candidate)?;
    check_loaded(&instance, &candidate, toolchains, sandbox)
}

/// [`check`] of what is loaded already.
pub(crate) fn check_loaded(
    instance: &Instance,
    candidate: &Candidate,
    toolchains: &Path,
    sandbox: Sandbox,
) -> Result<CheckOutcome, RunError> {
    let digest = candidate.digest();
    if let Err(error) = candidate.check_policy(instance) {
        return Ok(CheckOutcome {
            code: Some(error.code().to_owned()),
            digest,
            log: error.to_string(),
            ms: 0.0,
        });
    }
    if candidate.backend() == Backend::Cuda {
        return check_device(candidate, instance, toolchains, sandbox);
    }
    let folder = scratch("check")?;
    Ok(
        match build(candidate, instance.defines(), folder.path(), sandbox)? {
            Build::Library(library) => CheckOutcome {
                code: None,
                digest,
                log: match other_signature(candidate, instance, sandbox)? {
                    Some(warning) => format!("{warning}\n{}", library.log),
                    None => library.log,
                },
                ms: library.ms as f64,
            },
            Build::Refused(refused) => CheckOutcome {
                code: Some(refused.code.to_owned()),
                digest,
                log: refused.stderr,
                ms: 0.0,
            },
        },
    )
}

/// Name of the file that declares the entry as the judge calls it.
const DECLARATION: &str = "ksmith-declaration.h";

/// A warning where the entry is declared otherwise than the judge calls it: the sources are compiled once more after the
/// task's own declaration. Types of one representation (`size_t` for `int64_t`) are warned of as well, so it is no failure.
fn other_signature(
    candidate: &Candidate,
    instance: &Instance,
    sandbox: Sandbox,
) -> Result<Option<String>, RunError> {
    let Some(program) = candidate.cpu() else {
        return Ok(None);
    };
    let folder = scratch("signature")?;
    let copy = folder.path().join("candidate");
    let write = |path: &Path, text: &str| {
        let parent = path.parent().unwrap_or(&copy);
        std::fs::create_dir_all(parent).map_err(RunError::io("create", parent))?;
        std::fs::write(path, text).map_err(RunError::io("write", path))
    };
    for source in &candidate.sources {
        write(&copy.join(&source.path), &source.text)?;
    }
    let declaration = ksmith_task::abi::declaration(instance, &program.entry);
    write(&copy.join(DECLARATION), &declaration)?;
    let mut copied = candidate.clone();
    copied.dir.clone_from(&copy);
    let extra = ["-include".to_owned(), DECLARATION.to_owned()];
    let flags = [instance.defines(), extra.to_vec()].concat();
    let built = build(&copied, flags, &folder.path().join("cache"), sandbox)?;
    Ok(match built {
        Build::Refused(refused) if refused.stderr.contains("conflicting") => Some(format!(
            "WARNING: `{}` does not have the signature by which the task calls it:\n  {}\n`ksmith abi TASK` prints the \
             header with its names.",
            program.entry,
            ksmith_task::abi::prototype(instance, &program.entry)
        )),
        Build::Refused(_) | Build::Library(_) => None,
    })
}

fn check_device(
    candidate: &Candidate,
    instance: &Instance,
    toolchains: &Path,
    sandbox: Sandbox,
) -> Result<CheckOutcome, RunError> {
    let unsandboxed = sandbox == Sandbox::Unsandboxed;
    let compiled =
        ksmith_judge::compile_for_device(instance, candidate, toolchains, Level::Kernel, unsandboxed)
            .map_err(|error| {
                RunError::Arena(ArenaError::Environment {
                    what: chain(&error),
                    fix: "`ksmith toolchain cuda --install` fetches the compilers.".into(),
                })
            })?;
    let digest = candidate.digest();
    Ok(match compiled {
        Ok(checked) => CheckOutcome {
            code: None,
            digest,
            log: checked.log,
            ms: checked.ms,
        },
        Err((code, log)) => CheckOutcome {
            code: Some(code),
            digest,
            log,
            ms: 0.0,
        },
    })
}

fn build(
    candidate: &Candidate,
    defines: Vec<String>,
    cache: &Path,
    sandbox: Sandbox,
) -> Result<Build, RunError> {
    let Some(program) = candidate.cpu() else {
        return Err(RunError::Usage {
            what: "only CPU candidates are compiled here".into(),
            fix: "Use `ksmith judge` on a machine with the device.".into(),
        });
    };
    let mut options = BuildOptions::new(cache);
    options.unsandboxed = sandbox == Sandbox::Unsandboxed;
    let sources = Sources {
        folder: candidate.dir.clone(),
        files: candidate
            .sources
            .iter()
            .map(|source| source.path.to_string_lossy().into_owned())
            .collect(),
        entry: program.entry.clone(),
        flags: [program.flags.clone(), defines].concat(),
    };
    compile(&sources, &options).map_err(|error| {
        RunError::Arena(ArenaError::Environment {
            what: chain(&error),
            fix: "`ksmith doctor` shows compilers and isolation of this machine.".into(),
        })
    })
}

/// What the machine code of a candidate says of itself.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ProfileOutcome {
    /// Where the figures come from: here a model of the code, nothing was run.
    pub profile: Option<CpuProfile>,
    /// Findings in the machine code.
    pub findings: Vec<Finding>,
    /// What the analysis could not see.
    pub incomplete: Vec<String>,
}

/// Compiles a candidate and reads its machine code; `Err` of the inner result is the compiler's refusal.
///
/// # Errors
/// When the contract or the folder is wrong, or nothing can be compiled here.
pub fn profile(candidate: &Path, sandbox: Sandbox) -> Result<Result<ProfileOutcome, String>, RunError> {
    let candidate = Candidate::load(absolute(candidate)).map_err(RunError::Candidate)?;
    profile_loaded(&candidate, sandbox)
}

/// [`profile`] of what is loaded already.
pub(crate) fn profile_loaded(
    candidate: &Candidate,
    sandbox: Sandbox,
) -> Result<Result<ProfileOutcome, String>, RunError> {
    let folder = scratch("profile")?;
    let library = match build(candidate, Vec::new(), folder.path(), sandbox)? {
        Build::Library(library) => library,
        Build::Refused(refused) => return Ok(Err(format!("{}: {}", refused.code, refused.stderr))),
    };
    let analysis = x86::analyse(&library.path, x86::Options::default());
    let entry = candidate.cpu().map_or("", |program| program.entry.as_str());
    Ok(Ok(ProfileOutcome {
        profile: static_model(&analysis, entry),
        findings: analysis.report.findings,
        incomplete: analysis.report.incomplete,
    }))
}

/// Proves a candidate: every correctness gate, no timing.
///
/// # Errors
/// When the contract or the folder is wrong, or nothing can be judged here.
pub fn test(
    candidate: &Path,
    task: &Path,
    types: &[TypePick],
    sandbox: Sandbox,
) -> Result<Verdict, RunError> {
    let instance = first_instance(&load(task)?, types)?;
    let candidate = Candidate::load(absolute(candidate)).map_err(RunError::Candidate)?;
    let state = scratch("test")?;
    let mut options = JudgeOptions::new(state.path()).on(candidate.backend());
    options.effort = Effort::Correctness;
    options.unsandboxed = sandbox == Sandbox::Unsandboxed;
    let mut judge = Judge::open(&instance, options).map_err(from_judge)?;
    Ok(judge.score(&candidate))
}

/// Code of the first gate that the candidate failed.
pub fn first_failure(verdict: &Verdict) -> Option<String> {
    verdict
        .gates
        .iter()
        .find(|gate| gate.result == GateOutcome::Fail)
        .and_then(|gate| gate.code.clone())
}

/// Runs the task's own audit, instance by instance.
///
/// # Errors
/// When nothing can be judged here.
pub fn audit(task: &Task, sandbox: Sandbox) -> Result<Vec<(String, Audited)>, RunError> {
    let mut audits = Vec::new();
    for instance in task.instances_on(Backend::Cpu, &[])? {
        let state = scratch("audit")?;
        let mut arena = JudgeArena::open(&instance, Backend::Cpu, state.path(), sandbox)?;
        audits.push((instance.id(), arena.audit()?));
    }
    Ok(audits)
}

/// The first instance that fits the fixed dtypes.
///
/// # Errors
/// When none does.
pub fn first_instance(task: &Task, types: &[TypePick]) -> Result<Instance, RunError> {
    choose(task, None, types)?
        .into_iter()
        .next()
        .ok_or_else(|| RunError::Internal("a task without instances".into()))
}

/// A folder of the judge's own that is gone afterwards.
pub(crate) fn scratch(name: &str) -> Result<tempfile::TempDir, RunError> {
    tempfile::Builder::new()
        .prefix(&format!("ksmith-{name}-"))
        .tempdir()
        .map_err(RunError::io("create", &std::env::temp_dir()))
}
