//! Gate `compile`: what was hashed is what is compiled, in the compiler's box.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use ksmith_task::{Candidate, Digest, Instance};
use ksmith_worker::build::{self, Build, BuildOptions, Refused, Sources};
use serde_json::json;

use super::context::{Built, Code, End, GateEnd, Scoring};
use crate::device::Device;
use crate::judge::JudgeError;

pub(crate) fn compile(scoring: &mut Scoring<'_>) -> GateEnd {
    match build(
        scoring.instance,
        scoring.candidate,
        &scoring.scratch,
        scoring.build,
        scoring.worker.device.as_deref(),
    )? {
        Ok(built) => {
            let evidence = match &built.code {
                Code::Native { library, .. } => json!({
                    "library": library.digest,
                    "build_ms": library.ms,
                    "cached": library.cached,
                    "log": capped(&library.log),
                }),
                Code::Device(code) => json!({
                    "module": Digest::of(&code.cubin.image),
                    "build_ms": code.cubin.ms,
                    "cached": code.cached,
                    "log": capped(&code.cubin.log),
                }),
            };
            scoring.built = Some(built);
            Ok(End::Pass(evidence))
        }
        Err(refused) => Ok(End::Fail(
            refused.code.to_owned(),
            json!({ "stderr": capped(&refused.stderr) }),
        )),
    }
}

fn capped(text: &str) -> String {
    text.chars().take(4000).collect()
}

/// Writes the sources that were hashed into a fresh folder and compiles them there.
pub(crate) fn build(
    instance: &Instance,
    candidate: &Candidate,
    scratch: &Path,
    options: &BuildOptions,
    device: Option<&Device>,
) -> Result<Result<Built, Refused>, JudgeError> {
    if let Some(device) = device {
        return build_for(device, instance, candidate);
    }
    let Some(program) = candidate.cpu() else {
        return Err(JudgeError::Unsupported(
            "this candidate is not for the CPU".to_owned(),
        ));
    };
    let (folder, mut sources) = lay_down(candidate, scratch)?;
    sources.flags.extend(instance.defines());
    Ok(match build::compile(&sources, options)? {
        Build::Library(library) => Ok(Built {
            candidate: candidate.clone(),
            code: Code::Native {
                library,
                entry: program.entry.clone(),
                folder: Arc::new(folder),
            },
        }),
        Build::Refused(refused) => Err(refused),
    })
}

/// Compiles device code, or takes what was compiled ahead.
fn build_for(
    device: &Device,
    instance: &Instance,
    candidate: &Candidate,
) -> Result<Result<Built, Refused>, JudgeError> {
    let compiled = device
        .compiler
        .compile(instance, candidate)
        .map_err(|error| crate::device::ours(&error))?;
    Ok(match compiled {
        Ok(code) => Ok(Built {
            candidate: candidate.clone(),
            code: Code::Device(code),
        }),
        Err(unfit) => Err(Refused {
            code: match unfit.cause {
                "timeout" => "compile/timeout",
                _ => "compile/error",
            },
            stderr: unfit.log,
        }),
    })
}

fn lay_down(candidate: &Candidate, scratch: &Path) -> Result<(tempfile::TempDir, Sources), JudgeError> {
    fs::create_dir_all(scratch).map_err(JudgeError::io("could not make the scratch folder"))?;
    let folder =
        tempfile::tempdir_in(scratch).map_err(JudgeError::io("could not make a folder for the sources"))?;
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(JudgeError::io("could not open the sources to the compiler's box"))
    };
    open(folder.path(), 0o755)?;
    for source in &candidate.sources {
        let path = folder.path().join(&source.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(JudgeError::io("could not make a source folder"))?;
            if parent != folder.path() {
                open(parent, 0o755)?;
            }
        }
        fs::write(&path, &source.text).map_err(JudgeError::io("could not write a source"))?;
        open(&path, 0o644)?;
    }
    let compiled = |path: &Path| {
        matches!(
            path.extension().and_then(|extension| extension.to_str()),
            Some("c" | "cc" | "cpp" | "cxx")
        )
    };
    let sources = Sources {
        folder: folder.path().to_owned(),
        files: candidate
            .sources
            .iter()
            .filter(|source| compiled(&source.path))
            .map(|source| source.path.display().to_string())
            .collect(),
        entry: candidate
            .cpu()
            .map(|program| program.entry.clone())
            .unwrap_or_default(),
        flags: candidate
            .cpu()
            .map(|program| program.flags.clone())
            .unwrap_or_default(),
    };
    Ok((folder, sources))
}
