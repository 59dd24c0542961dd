//! Writes the manifest of a candidate folder.

use std::fs;
use std::path::Path;

use crate::SearchError;

/// Writes `candidate.toml`.
pub(crate) fn write_manifest(
    folder: &Path,
    sources: &[String],
    entry: &str,
    flags: &[String],
    libraries: &[String],
) -> Result<(), SearchError> {
    let list = |items: &[String]| {
        items
            .iter()
            .map(|item| format!("{item:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = format!(
        "schema = 1\nbackend = \"cpu\"\nsources = [{}]\nentry = {entry:?}\nflags = [{}]\n",
        list(sources),
        list(flags)
    );
    if !libraries.is_empty() {
        text.push_str(&format!("libraries = [{}]\n", list(libraries)));
    }
    fs::create_dir_all(folder).map_err(SearchError::io("create", folder))?;
    let path = folder.join("candidate.toml");
    fs::write(&path, text).map_err(SearchError::io("write", &path))
}
