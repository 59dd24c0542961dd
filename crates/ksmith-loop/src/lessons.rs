//! What writers may learn of failed candidates, kept beside the record so that a resumed run says the same again. No
//! figure or verdict rests on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where it lies.
fn folder(run: &Path) -> PathBuf {
    run.join("work").join("lessons")
}

/// Keeps a lesson; one that cannot be kept is only missing from briefs after a resume.
pub(crate) fn keep(run: &Path, candidate: &str, text: &str) {
    let folder = folder(run);
    let kept = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(format!("{candidate}.txt")), text));
    drop(kept);
}

/// All lessons of a run, by candidate.
pub(crate) fn read(run: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder(run)).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let text = std::fs::read_to_string(entry.path()).ok()?;
            Some((name.strip_suffix(".txt")?.to_owned(), text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lessons_are_there_again() {
        let run = tempfile::tempdir().unwrap();
        assert!(read(run.path()).is_empty());
        keep(run.path(), "c0007", "compile/error: line 3");
        assert_eq!(read(run.path())["c0007"], "compile/error: line 3");
    }
}
