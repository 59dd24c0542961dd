//! Paths in records: a record says nothing of where on a machine its run lay.

use std::path::{Component, Path, PathBuf};

/// `path` as seen from the folder `from`; unchanged where either cannot be found.
pub fn relative_to(from: &Path, path: &Path) -> PathBuf {
    let (Ok(from), Ok(whole)) = (from.canonicalize(), path.canonicalize()) else {
        return path.to_owned();
    };
    let (base, parts): (Vec<_>, Vec<_>) = (from.components().collect(), whole.components().collect());
    let shared = base
        .iter()
        .zip(&parts)
        .take_while(|(one, other)| one == other)
        .count();
    let up = base[shared..].iter().map(|_| Component::ParentDir);
    let found: PathBuf = up.chain(parts[shared..].iter().copied()).collect();
    if found.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_from_where_the_run_lies() {
        let folder = tempfile::tempdir().unwrap();
        let (here, task) = (
            folder.path().join("work/here"),
            folder.path().join("work/tasks/softmax"),
        );
        std::fs::create_dir_all(&here).unwrap();
        std::fs::create_dir_all(&task).unwrap();
        assert_eq!(relative_to(&here, &task), Path::new("../tasks/softmax"));
        assert_eq!(relative_to(folder.path(), &task), Path::new("work/tasks/softmax"));
        assert_eq!(relative_to(&task, &task), Path::new("."));
        assert_eq!(relative_to(&here, Path::new("/no/such")), Path::new("/no/such"));
    }
}
