//! New tasks: short, lint-clean, and their C files compile and agree with each other on a small case.

use std::fs;
use std::process::Command;

use ksmith_task::scaffold::{Start, write};
use ksmith_task::{Candidate, Change, Digest, FAMILIES, Lock, Task, abi, ambiguity, lint};

#[test]
fn a_new_task_of_every_family_is_short_and_passes_lint() {
    for family in FAMILIES {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "my-task", &Start::Family(family.name.to_owned())).unwrap();
        let text = fs::read_to_string(dir.path().join("task.toml")).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 20, "{}: {lines} lines", family.name);
        let task =
            Task::load(dir.path()).unwrap_or_else(|error| panic!("{}: {}", family.name, error.render()));
        let report = lint::lint(&task);
        assert!(report.passes(), "{}: {:#?}", family.name, report.findings);
        assert_eq!(ambiguity(&task).len(), 10);
        assert!(family.summary().ends_with('.'));
        assert_eq!(task.contract().family, family.name);
    }
}

#[test]
fn reference_and_baseline_of_every_family_match_their_headers() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped 1: no C compiler");
        return;
    }
    for family in FAMILIES {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "my-task", &Start::Family(family.name.to_owned())).unwrap();
        let task = Task::load(dir.path()).unwrap();
        let instance = &task.instances()[0];
        let candidate = Candidate::load(dir.path().join("baseline/cpu")).unwrap();
        let entry = &candidate.cpu().unwrap().entry;
        let pairs = [
            (abi::reference_header(instance), "reference.c"),
            (abi::header_for(instance, entry), "baseline/cpu/kernel.c"),
        ];
        for (header, source) in pairs {
            fs::write(dir.path().join("check.h"), header).unwrap();
            let done = Command::new("cc")
                .args([
                    "-std=c17",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-fsyntax-only",
                    "-include",
                    "check.h",
                    source,
                ])
                .current_dir(dir.path())
                .output()
                .unwrap();
            assert!(
                done.status.success(),
                "{} {source}: {}",
                family.name,
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
}

#[test]
fn a_task_from_a_prototype_lints() {
    let dir = tempfile::tempdir().unwrap();
    let prototype = "void f(const float* x, float* y, int64_t n)".parse().unwrap();
    write(dir.path(), "f", &Start::Prototype(prototype)).unwrap();
    let task = Task::load(dir.path()).unwrap_or_else(|error| panic!("{}", error.render()));
    let errors: Vec<String> = lint::lint(&task)
        .findings
        .into_iter()
        .filter(|finding| finding.severity == lint::Severity::Error)
        .map(|finding| finding.key)
        .collect();
    assert_eq!(
        errors,
        ["reference.source", "baseline.cpu"],
        "both C files are still to be written"
    );
    for file in ["reference.c", "baseline/cpu/kernel.c"] {
        let text = fs::read_to_string(dir.path().join(file)).unwrap();
        fs::write(dir.path().join(file), text.replace("#error", "//")).unwrap();
    }
    let task = Task::load(dir.path()).unwrap();
    assert!(lint::lint(&task).passes());
    assert_eq!(
        abi::prototype(&task.instances()[0], "f"),
        "void f(const float* x, float* y, int64_t n);"
    );
}

#[test]
fn scalars_from_a_prototype_vary_and_fixed_ones_are_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let prototype = "void f(int64_t n, float a, int k, bool b, float* y, const float* x)"
        .parse()
        .unwrap();
    write(dir.path(), "f", &Start::Prototype(prototype)).unwrap();
    let task = Task::load(dir.path()).unwrap_or_else(|error| panic!("{}", error.render()));
    let warned = |task: &Task| {
        let findings = lint::lint(task).findings.into_iter();
        findings
            .filter(|finding| finding.key.starts_with("scalars."))
            .map(|finding| finding.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(warned(&task), Vec::<String>::new());
    assert_eq!(
        abi::prototype(&task.instances()[0], "f"),
        "void f(const float* x, float* y, float a, int32_t k, uint8_t b, int64_t n);"
    );
    let path = dir.path().join("task.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("fill = \"integers(1, 8)\"", "value = 3")).unwrap();
    assert_eq!(
        warned(&Task::load(dir.path()).unwrap()),
        ["it is always 3: a candidate may compile this value in"]
    );
}

#[test]
fn the_lock_tells_exactly_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t", &Start::Family("gemm".to_owned())).unwrap();
    let task = Task::load(dir.path()).unwrap();
    let lock = Lock::of(&task, Digest::of(b"judge")).unwrap();
    assert_eq!(lock.compare(&task).unwrap(), []);
    let text = fs::read_to_string(dir.path().join("reference.c")).unwrap();
    fs::write(dir.path().join("reference.c"), text + " ").unwrap();
    fs::write(dir.path().join("baseline/cpu/extra.h"), "").unwrap();
    fs::remove_file(dir.path().join("baseline/cpu/kernel.c")).unwrap();
    assert_eq!(
        lock.compare(&task).unwrap(),
        [
            Change::Removed {
                file: "baseline/cpu/kernel.c".to_owned()
            },
            Change::Changed {
                file: "reference.c".to_owned()
            },
            Change::Added {
                file: "baseline/cpu/extra.h".to_owned()
            },
        ]
    );
    assert_ne!(
        lock.digest(),
        Lock::of(&task, Digest::of(b"judge"))
            .map(|lock| lock.digest())
            .unwrap()
    );
}

#[test]
fn a_folder_with_files_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "").unwrap();
    assert!(write(dir.path(), "t", &Start::Family("gemm".to_owned())).is_err());
    assert!(write(&dir.path().join("new"), "t", &Start::Family("gemmm".to_owned())).is_err());
    assert!(write(&dir.path().join("new"), "../t", &Start::Family("gemm".to_owned())).is_err());
}
