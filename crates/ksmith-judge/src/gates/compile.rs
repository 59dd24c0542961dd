//! Gate `compile`: what was hashed is what is compiled, in the compiler's box.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use ksmith_task::{Candidate, Instance};
use ksmith_worker::build::{self, Build, BuildOptions, Refused, Sources};
use serde_json::json;

use super::context::{Built, End, GateEnd, Scoring};
use crate::judge::JudgeError;

pub(crate) fn compile(scoring: &mut Scoring<'_>) -> GateEnd {
    match build(
        scoring.instance,
        scoring.candidate,
        &scoring.scratch,
        scoring.build,
    )? {
        Ok(built) => {
            let evidence = json!({
                "library": built.library.digest,
                "build_ms": built.library.ms,
                "cached": built.library.cached,
                "log": capped(&built.library.log),
            });
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
) -> Result<Result<Built, Refused>, JudgeError> {
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
            library,
            entry: program.entry.clone(),
            folder: Arc::new(folder),
        }),
        Build::Refused(refused) => Err(refused),
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
