//! Operators without a structure are rewritten from their own source and stay right, or are left to flags.

#[allow(dead_code, reason = "each user needs a part")]
mod driver;

use std::path::{Path, PathBuf};
use std::process::Command;

use ksmith_machine::Machine;
use ksmith_search::{Facts, SearchAgent};
use ksmith_task::{Backend, Brief, Candidate, Proposal, Task};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn proposals(task: &Task, direction: &str, out: &Path) -> Vec<Proposal> {
    let instance = task.instances().remove(0);
    let brief = Brief::opening(&instance, Backend::Cpu, Some(direction), 7, out);
    let mut agent = SearchAgent::new(Facts::of(&Machine::read(), 1)).expect("the built-in structures parse");
    let mut all = agent.propose(&brief, 32).expect("the agent proposes");
    all.retain(|proposal| proposal.direction == direction);
    all
}

fn prove(task: &Task, proposals: &[Proposal]) {
    let instance = task.instances().remove(0);
    for proposal in proposals {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let candidate = Candidate::load(&proposal.folder).expect("a proposal is a candidate");
        candidate
            .check_policy(&instance)
            .expect("a proposal keeps the policy");
        let flags = &candidate.cpu().expect("a CPU candidate").flags;
        driver::run(
            &instance,
            &driver::cases(&instance),
            &proposal.folder,
            flags,
            scratch.path(),
        )
        .unwrap_or_else(|cause| panic!("{}: {cause}", proposal.hypothesis));
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn has_gcc() -> bool {
    let has = Command::new("gcc").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: 1 test, there is no gcc on this machine");
    }
    has
}

#[test]
fn a_stencil_and_a_byte_kernel_are_rewritten_and_stay_right() {
    if !has_gcc() {
        return;
    }
    for (name, own) in [("stencil", "i_row"), ("bytes", "found_part")] {
        let task = Task::load(folder(name)).expect("the task loads");
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let found = proposals(&task, "source-loops", scratch.path());
        let marked = |proposal: &&Proposal| {
            std::fs::read_to_string(proposal.folder.join("kernel.c"))
                .is_ok_and(|text| text.contains("#pragma omp simd"))
        };
        assert!(found.iter().filter(marked).count() >= 2, "{name}: {found:?}");
        let rewritten = |proposal: &&Proposal| {
            std::fs::read_to_string(proposal.folder.join("kernel.c")).is_ok_and(|text| text.contains(own))
        };
        assert_eq!(found.iter().filter(rewritten).count(), 2, "{name}: {found:?}");
        prove(&task, &found);
    }
}

#[test]
fn a_convolution_and_distances_are_interchanged_and_stay_right() {
    if !has_gcc() {
        return;
    }
    for (name, slot) in [
        ("convolution", "sum_strip[j - j_strip] += x["),
        ("distances", "float step = p["),
    ] {
        let task = Task::load(folder(name)).expect("the task loads");
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let found = proposals(&task, "source-loops", scratch.path());
        let strips = |proposal: &&Proposal| {
            std::fs::read_to_string(proposal.folder.join("kernel.c"))
                .is_ok_and(|text| text.contains("sum_strip") && text.contains(slot))
        };
        assert_eq!(found.iter().filter(strips).count(), 1, "{name}: {found:?}");
        prove(&task, &found);
    }
}

#[test]
fn a_histogram_is_counted_in_several_tables_and_never_marked_as_independent() {
    let task = Task::load(folder("histogram")).expect("the task loads");
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let found = proposals(&task, "source-loops", scratch.path());
    let mut several = 0;
    for proposal in &found {
        let text = std::fs::read_to_string(proposal.folder.join("kernel.c")).expect("a source");
        several += usize::from(text.contains("count_ways[3][x[(i + 3)]] += 1;"));
        let counting = text.find("[x[").expect("the counting loop");
        let before = text[..counting].rfind("for (").expect("its head");
        let line = text[..before].trim_end().lines().last().unwrap_or_default();
        assert!(!line.contains("#pragma"), "{text}");
    }
    assert_eq!(several, 2, "{found:?}");
    if has_gcc() {
        prove(&task, &found);
    }
    let scratch = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(proposals(&task, "source-flags", scratch.path()).len(), 6);
}

#[test]
fn rewrites_of_the_shipped_baselines_are_right() {
    if !has_gcc() {
        return;
    }
    // Those whose rewrites keep the order of sums or have room in the tolerance; the judge decides about the others.
    for name in [
        "softmax",
        "silu_mul",
        "column_sum",
        "layernorm",
        "gemv",
        "attention",
    ] {
        let task = Task::load(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../tasks")
                .join(name),
        )
        .expect("the task loads");
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let found = proposals(&task, "source-loops", scratch.path());
        assert!(!found.is_empty(), "{name} is not rewritten");
        prove(&task, &found);
    }
}
