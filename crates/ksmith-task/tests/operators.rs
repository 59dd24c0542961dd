//! The format holds for real operators: each contract parses, binds at its workloads and passes the static lint.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

use std::fs;
use std::path::{Path, PathBuf};

use ksmith_task::{Task, abi, lint};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Copies a contract and adds what lint wants beside it: a reference, a baseline, a generator.
fn complete(name: &str, dir: &Path) -> Task {
    let text = fs::read_to_string(testdata().join("operators").join(name).join("task.toml")).unwrap();
    fs::write(
        dir.join("task.toml"),
        text.replace(", cuda = \"baseline/cuda\"", ""),
    )
    .unwrap();
    let task = Task::load(dir).unwrap_or_else(|error| panic!("{name}: {}", error.render()));
    let instance = &task.instances()[0];
    fs::write(dir.join("reference.c"), abi::reference_header(instance)).unwrap();
    fs::write(dir.join("gen.c"), "void generate(void) {}\n").unwrap();
    fs::create_dir_all(dir.join("baseline/cpu")).unwrap();
    fs::write(
        dir.join("baseline/cpu/kernel.c"),
        abi::header_for(instance, "run"),
    )
    .unwrap();
    let manifest = "schema = 1\nbackend = \"cpu\"\nsources = [\"kernel.c\"]\nentry = \"run\"\n";
    fs::write(dir.join("baseline/cpu/candidate.toml"), manifest).unwrap();
    task
}

fn names() -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(testdata().join("operators"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn softmax_binds_with_axes_in_the_order_of_the_file() {
    let task =
        Task::load(testdata().join("operators/softmax")).unwrap_or_else(|error| panic!("{}", error.render()));
    let instances = task.instances();
    let ids: Vec<_> = instances.iter().map(|instance| instance.id()).collect();
    assert_eq!(ids, ["softmax[T=f32]", "softmax[T=bf16]"]);
    let bound = instances[1].bind(&task.contract().workloads[0].axes).unwrap();
    assert_eq!(bound.axes, [("rows".to_owned(), 256), ("cols".to_owned(), 2048)]);
    assert_eq!(bound.tensors[0].extent_bytes, 256 * 2048 * 2);
    assert_eq!(task.contract().hidden.distributions.len(), 5);
}

#[test]
fn every_operator_parses_binds_and_lints() {
    let names = names();
    assert_eq!(names.len(), 11);
    for name in names {
        let dir = tempfile::tempdir().unwrap();
        let task = complete(&name, dir.path());
        let report = lint::lint(&task);
        let errors: Vec<_> = report
            .findings
            .iter()
            .filter(|finding| finding.severity == lint::Severity::Error)
            .collect();
        // Softmax's second workload is for CUDA, whose baseline is left out here.
        let expected = usize::from(name == "softmax");
        assert_eq!(errors.len(), expected, "{name}: {errors:#?}");
    }
}

#[test]
fn the_expanded_contract_parses_back_to_the_same_contract() {
    for name in names() {
        let dir = tempfile::tempdir().unwrap();
        let task = complete(&name, dir.path());
        let full = task.full();
        let again = Task::parse(&dir.path().join("task.toml"), full.clone())
            .unwrap_or_else(|error| panic!("{name}: {}\n{full}", error.render()));
        assert_eq!(again.contract(), task.contract(), "{name}");
        assert_eq!(again.full(), full, "{name}");
    }
}

#[test]
fn a_state_is_cut_along_the_axis_that_follows_from_the_shapes() {
    let dir = tempfile::tempdir().unwrap();
    let task = complete("kdattn", dir.path());
    assert_eq!(task.contract().outputs[1].cut.as_deref(), Some("tokens"));
}

#[test]
fn padded_rows_have_gaps_and_the_header_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let task = complete("gemm-padded", dir.path());
    let instance = &task.instances()[0];
    let bound = instance.bind(&task.contract().workloads[0].axes).unwrap();
    assert_eq!(bound.tensors[0].strides, [208, 1]);
    assert_eq!(bound.tensors[0].extent_bytes, (191 * 208 + 200) * 2);
    assert!(!bound.tensors[0].is_contiguous());
    insta::assert_snapshot!(abi::header(instance));
}

#[test]
fn a_tensor_in_place_appears_once_and_writable() {
    let dir = tempfile::tempdir().unwrap();
    let task = complete("residual-inplace", dir.path());
    assert_eq!(
        abi::prototype(&task.instances()[1], "f"),
        "void f(bf16* x, const bf16* delta, float alpha, int64_t rows, int64_t cols);"
    );
}

#[test]
fn sampled_shapes_satisfy_constraints_and_limits() {
    let dir = tempfile::tempdir().unwrap();
    let task = complete("moe-gate", dir.path());
    let limits = ksmith_task::ShapeLimits {
        max_bytes: 1 << 20,
        max_flops: 1e9,
    };
    let mut state = 1u64;
    let mut bits = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    };
    for instance in task.instances() {
        for _ in 0..100 {
            let shape = instance.sample_shape(&mut bits, limits).unwrap();
            assert!(shape["k"] <= shape["experts"]);
            assert!(instance.bind(&shape).unwrap().storage_bytes() <= 1 << 20);
        }
        assert!(!instance.corner_shapes().is_empty() && !instance.odd_shapes().is_empty());
    }
}
