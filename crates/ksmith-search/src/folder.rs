//! Writes candidate folders.

use std::fs;
use std::path::Path;

use crate::SearchError;

fn list(items: &[String]) -> String {
    let items: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(", "))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), SearchError> {
    fs::create_dir_all(folder).map_err(SearchError::io("create", folder))?;
    let path = folder.join(name);
    fs::write(&path, text).map_err(SearchError::io("write", &path))
}

/// Writes the `candidate.toml` of a CPU candidate.
pub(crate) fn write_manifest(
    folder: &Path,
    sources: &[String],
    entry: &str,
    flags: &[String],
    libraries: &[String],
) -> Result<(), SearchError> {
    let mut text = format!(
        "schema = 1\nbackend = \"cpu\"\nsources = {}\nentry = {entry:?}\nflags = {}\n",
        list(sources),
        list(flags)
    );
    if !libraries.is_empty() {
        text.push_str(&format!("libraries = {}\n", list(libraries)));
    }
    write(folder, "candidate.toml", &text)
}

/// Writes a CUDA candidate: device code and its launch plan.
pub(crate) fn write_cuda(
    folder: &Path,
    source: &str,
    flags: &[String],
    plan: &str,
) -> Result<(), SearchError> {
    let text = format!(
        "schema = 1\nbackend = \"cuda\"\nsources = [\"kernel.cu\"]\nflags = {}\n\n{plan}",
        list(flags)
    );
    write(folder, "candidate.toml", &text)?;
    write(folder, "kernel.cu", source)
}
