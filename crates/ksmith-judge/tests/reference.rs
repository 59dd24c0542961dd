//! The boxed reference: values, a live process over many cases, and what happens when it fails.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::Path;
use std::time::Duration;

use ksmith_box::Level;
use ksmith_judge::number::Values;
use ksmith_judge::reference::{Argument, Kind, Live, Program, ReferenceError, Scalar, Signature};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

fn argument(name: &str, written: bool) -> Argument {
    Argument {
        name: name.to_owned(),
        kind: Kind::Real,
        rank: 1,
        written,
    }
}

fn signature() -> Signature {
    Signature {
        tensors: vec![argument("x", false), argument("y", true)],
        scalars: vec![Kind::Real],
        axes: 1,
    }
}

fn build(folder: &Path, text: &str) -> Result<Program, ReferenceError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let source = folder.join("reference.c");
    std::fs::write(&source, text).unwrap();
    Program::build(
        &source,
        "scale",
        signature(),
        &folder.join("cache"),
        (Level::Limits, false, 1),
    )
}

const SCALE: &str = "#include <stdint.h>\n\
    void scale(const double *x, double *y, double a, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = a * x[i]; }\n";

fn call(live: &mut Live, values: Vec<f64>, a: f64) -> Result<Vec<Values>, ReferenceError> {
    let shape = [values.len()];
    let axes = [values.len() as i64];
    let values = Values::Real(values);
    live.call(&[(&values, &shape[..])], &[&shape[..]], &[Scalar::Real(a)], &axes)
}

#[test]
fn one_live_process_computes_many_cases_of_different_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), SCALE).unwrap();
    let mut live = Live::start(&program, Duration::from_secs(20)).unwrap();
    for size in [3usize, 100_000, 1, 70_000, 0] {
        let values: Vec<f64> = (0..size).map(|i| i as f64 - 7.0).collect();
        let want = values.iter().map(|value| 2.5 * value).collect();
        assert_eq!(call(&mut live, values, 2.5).unwrap(), vec![Values::Real(want)]);
    }
}

#[test]
fn a_reference_that_does_not_compile_is_named_with_the_compilers_words() {
    let folder = tempfile::tempdir().unwrap();
    let error = build(folder.path(), "void scale(").unwrap_err();
    assert!(matches!(error, ReferenceError::Compile { .. }), "{error}");
    assert!(error.to_string().contains("error"), "{error}");
}

#[test]
fn a_reference_that_crashes_or_hangs_is_our_error_within_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let crash = build(
        folder.path(),
        "#include <stdint.h>\n#include <stdlib.h>\n\
        void scale(const double *x, double *y, double a, int64_t n) { abort(); }\n",
    )
    .unwrap();
    let mut live = Live::start(&crash, Duration::from_secs(20)).unwrap();
    assert!(matches!(
        call(&mut live, vec![1.0], 1.0),
        Err(ReferenceError::Ended { .. })
    ));

    let folder = tempfile::tempdir().unwrap();
    let hang = build(
        folder.path(),
        "#include <stdint.h>\n\
        void scale(const double *x, double *y, double a, int64_t n) { volatile int go = 1; while (go) ; }\n",
    )
    .unwrap();
    let mut live = Live::start(&hang, Duration::from_millis(300)).unwrap();
    assert!(matches!(
        call(&mut live, vec![1.0], 1.0),
        Err(ReferenceError::TimedOut { .. })
    ));
}

#[test]
fn a_reference_that_shrinks_the_shared_file_cannot_harm_the_judge() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(
        folder.path(),
        "#include <stdint.h>\n#include <unistd.h>\n\
        void scale(const double *x, double *y, double a, int64_t n) { (void)!ftruncate(3, 0); }\n",
    )
    .unwrap();
    let mut live = Live::start(&program, Duration::from_secs(20)).unwrap();
    assert!(call(&mut live, vec![1.0; 4096], 1.0).is_err());
}

#[test]
fn a_missing_interpreter_or_library_is_a_named_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("reference.py");
    std::fs::write(&source, "def scale(x, a, n):\n    return a * x\n").unwrap();
    match Program::build(
        &source,
        "scale",
        signature(),
        &folder.path().join("cache"),
        (Level::Limits, false, 1),
    ) {
        Ok(program) => {
            let mut live = Live::start(&program, Duration::from_secs(60)).unwrap();
            assert_eq!(
                call(&mut live, vec![1.0, -2.0], 3.0).unwrap(),
                vec![Values::Real(vec![3.0, -6.0])]
            );
        }
        Err(ReferenceError::Missing { what, .. }) => {
            println!("skipped 1 test of Python references: no {what}")
        }
        Err(other) => panic!("{other}"),
    }
}
