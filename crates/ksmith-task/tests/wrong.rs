//! Wrong contracts and candidates give a precise error: place, expectation, suggestion. The rendered text is the
//! snapshot.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

use std::fs;
use std::path::{Path, PathBuf};

use ksmith_task::{Candidate, Task};

fn cases(folder: &str) -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(folder);
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    cases.sort();
    cases
}

#[test]
fn wrong_contracts_give_precise_errors() {
    let cases = cases("wrong-tasks");
    assert!(cases.len() >= 20);
    let mut all = String::new();
    for (name, path) in cases {
        let text = fs::read_to_string(path).unwrap();
        let error = Task::parse(Path::new("task.toml"), text).expect_err(&name);
        assert!(error.line_column().is_some(), "{name} has no place");
        all.push_str(&format!("== {name}\n{error}\n{}\n", error.render()));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn wrong_candidates_give_precise_errors() {
    let cases = cases("wrong-candidates");
    assert!(cases.len() >= 12);
    let dir = tempfile::tempdir().unwrap();
    for file in ["kernel.c", "kernel.cu", "kernel.o"] {
        fs::write(dir.path().join(file), "/* nothing */\n").unwrap();
    }
    fs::write(dir.path().join("binary.c"), b"\x7fELF\x00\xff").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("link.c")).unwrap();
    let mut all = String::new();
    for (name, path) in cases {
        fs::copy(path, dir.path().join("candidate.toml")).unwrap();
        let error = Candidate::load(dir.path()).expect_err(&name);
        assert!(error.line_column().is_some(), "{name} has no place");
        all.push_str(&format!("== {name}\n{error}\n{}\n", error.render()));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_right_cuda_candidate_loads_and_its_digest_follows_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cuda-candidate.toml");
    fs::copy(manifest, dir.path().join("candidate.toml")).unwrap();
    fs::write(dir.path().join("kernel.cu"), "// one\n").unwrap();
    let one = Candidate::load(dir.path()).unwrap_or_else(|error| panic!("{}", error.render()));
    assert_eq!(one.cuda().unwrap().variants.len(), 2);
    let task = Task::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/operators/softmax")).unwrap();
    assert_eq!(one.check_policy(&task.instances()[0]), Ok(()));
    fs::write(dir.path().join("kernel.cu"), "// two\n").unwrap();
    assert_ne!(one.digest(), Candidate::load(dir.path()).unwrap().digest());
    fs::write(dir.path().join("kernel.cu"), "#include \"../reference.c\"\n").unwrap();
    let error = Candidate::load(dir.path())
        .unwrap()
        .check_policy(&task.instances()[0])
        .unwrap_err();
    assert_eq!(error.code(), "policy/include");
}
