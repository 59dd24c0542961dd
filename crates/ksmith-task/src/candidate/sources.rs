//! The sources of a candidate: plain text files inside its folder, nothing else.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::SourceFile;
use super::load::Place;
use crate::CandidateError;
use crate::contract::Backend;
use crate::document::At;

/// A kernel is text that people review; larger files are data in disguise.
const MAX_SOURCE: u64 = 1 << 20;
const MAX_SOURCES: usize = 64;

impl Place<'_> {
    pub(super) fn sources(
        &self,
        dir: &Path,
        names: &At<Vec<At<String>>>,
        backend: Backend,
    ) -> Result<Vec<SourceFile>, CandidateError> {
        if names.is_empty() || names.len() > MAX_SOURCES {
            return Err(self
                .error(&names.span, format!("{} sources", names.len()))
                .expected(format!("expected 1 to {MAX_SOURCES} files")));
        }
        let mut files: Vec<SourceFile> = Vec::new();
        for name in names.iter() {
            let path = self.checked_path(name, backend)?;
            if files.iter().any(|known| known.path == path) {
                return Err(self.error(&name.span, format!("`{}` is listed twice", name.value)));
            }
            let text = self.read(dir, &path, name)?;
            files.push(SourceFile { path, text });
        }
        let endings: &[&str] = match backend {
            Backend::Cpu => &["c", "cc", "cpp"],
            Backend::Cuda => &["cu", "ptx"],
        };
        if !files.iter().any(|file| endings.contains(&ending(&file.path))) {
            return Err(self
                .error(&names.span, "there is nothing to compile")
                .expected(format!(
                    "expected a file with one of the endings {}",
                    endings.join(", ")
                )));
        }
        Ok(files)
    }

    fn checked_path(&self, name: &At<String>, backend: Backend) -> Result<PathBuf, CandidateError> {
        let given = Path::new(&name.value);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
        let inside = !name.is_empty()
            && name.chars().all(plain)
            && given.components().all(|part| match part {
                // A leading `-` would be read as a flag by the compiler.
                Component::Normal(part) => !part.to_string_lossy().starts_with('-'),
                _ => false,
            });
        if !inside {
            return Err(self
                .error(
                    &name.span,
                    format!("`{}` is not a path inside the folder", name.value.escape_debug()),
                )
                .expected("expected a relative path of letters, digits, `_`, `-`, `.`, without `..`"));
        }
        let known: &[&str] = match backend {
            Backend::Cpu => &["c", "cc", "cpp", "h", "hpp"],
            Backend::Cuda => &["cu", "cuh", "h", "hpp", "ptx"],
        };
        let path: PathBuf = given.components().collect();
        if known.contains(&ending(&path)) {
            return Ok(path);
        }
        Err(self
            .error(
                &name.span,
                format!("`{}` is no source of this backend", name.value),
            )
            .expected(format!("expected one of the endings {}", known.join(", "))))
    }

    /// Reads a file without following a link at any step of the path.
    fn read(&self, dir: &Path, path: &Path, name: &At<String>) -> Result<String, CandidateError> {
        let mut at = dir.to_owned();
        let depth = path.components().count();
        for (index, part) in path.components().enumerate() {
            at.push(part);
            let metadata = fs::symlink_metadata(&at).map_err(|error| {
                self.error(&name.span, format!("cannot read `{}`: {error}", name.value))
                    .expected("expected a file in the candidate's folder")
            })?;
            if metadata.file_type().is_symlink() {
                return Err(self
                    .error(
                        &name.span,
                        format!("`{}` is or passes a symbolic link", name.value),
                    )
                    .expected("expected a plain file"));
            }
            if index + 1 == depth && (!metadata.is_file() || metadata.len() > MAX_SOURCE) {
                return Err(self
                    .error(
                        &name.span,
                        format!("`{}` is not a plain file of at most 1 MiB", name.value),
                    )
                    .expected("expected a plain file"));
            }
        }
        let bytes = fs::read(&at)
            .map_err(|error| self.error(&name.span, format!("cannot read `{}`: {error}", name.value)))?;
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        text.ok_or_else(|| {
            self.error(&name.span, format!("`{}` is a binary file", name.value))
                .expected("expected UTF-8 text without zero bytes")
        })
    }
}

fn ending(path: &Path) -> &str {
    path.extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default()
}
