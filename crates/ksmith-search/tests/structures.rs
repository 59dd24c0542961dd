//! Every structure renders, compiles without warnings, and its first configuration is right on its operator's task.

#[allow(dead_code, reason = "each user needs a part")]
mod driver;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ksmith_machine::Machine;
use ksmith_search::{Facts, Library, SearchAgent};
use ksmith_task::{Backend, Brief, Candidate, Instance, Task};

fn tasks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks")
}

fn brief(instance: &Instance, direction: Option<&str>, out: &Path) -> Brief {
    Brief::opening(instance, Backend::Cpu, direction, 7, out)
}

fn agent() -> SearchAgent {
    SearchAgent::new(Facts::of(&Machine::read(), 1)).expect("the built-in structures parse")
}

/// An agent for a machine without caches to speak of, whose kernels take the paths of large tensors at every size.
fn agent_without_caches() -> SearchAgent {
    let facts = Facts {
        l3_bytes: 64,
        ..Facts::of(&Machine::read(), 1)
    };
    SearchAgent::new(facts).expect("the built-in structures parse")
}

#[test]
fn every_structure_is_right_on_its_operators_task() {
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: 1 test, there is no gcc on this machine");
        return;
    }
    let library = Library::built_in().expect("the built-in structures parse");
    let mut skipped = Vec::new();
    for structure in library.structures() {
        let manifest = &structure.manifest;
        if manifest.backend != Backend::Cpu {
            continue;
        }
        for operator in &manifest.operators {
            let task = Task::load(tasks().join(operator)).expect("a shipped task loads");
            for (instance, mut agent) in task
                .instances_on(Backend::Cpu, &[])
                .expect("instances")
                .into_iter()
                .flat_map(|instance| [(instance.clone(), agent()), (instance, agent_without_caches())])
            {
                let scratch = tempfile::tempdir().expect("a temporary folder");
                let proposals = agent
                    .propose(&brief(&instance, Some(&manifest.name), scratch.path()), 1)
                    .expect("the agent proposes");
                let Some(proposal) = proposals
                    .first()
                    .filter(|proposal| proposal.direction == manifest.name)
                else {
                    skipped.push(format!("{} on {}", manifest.name, instance.id()));
                    continue;
                };
                let candidate = Candidate::load(&proposal.folder).expect("a proposal is a candidate");
                candidate
                    .check_policy(&instance)
                    .expect("a proposal keeps the policy");
                let flags = &candidate.cpu().expect("a CPU candidate").flags;
                let ratio = driver::run(
                    &instance,
                    &driver::cases(&instance),
                    &proposal.folder,
                    flags,
                    scratch.path(),
                )
                .unwrap_or_else(|cause| panic!("{} on {}: {cause}", proposal.hypothesis, instance.id()));
                assert!(
                    ratio <= 1.0,
                    "{} on {}: {ratio}",
                    proposal.hypothesis,
                    instance.id()
                );
            }
        }
    }
    if !skipped.is_empty() {
        eprintln!(
            "skipped: {} structures that this processor cannot run: {}",
            skipped.len(),
            skipped.join(", ")
        );
    }
    assert!(skipped.len() < library.structures().len(), "nothing was tested");
}

#[test]
fn where_the_policy_allows_threads_the_outer_loop_is_split_and_stays_right() {
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: 1 test, there is no gcc on this machine");
        return;
    }
    for (operator, structure) in [
        ("softmax", "softmax-rows"),
        ("rmsnorm_residual", "rmsnorm-residual-rows"),
        ("silu_mul", "gated-elements"),
        ("gemm", "gemm-panels"),
        ("gemm_int8", "gemm-int8"),
    ] {
        let task = Task::load(tasks().join(operator)).expect("a shipped task loads");
        let instance = task.instances().remove(0);
        let facts = Facts {
            l3_bytes: 64,
            ..Facts::of(&Machine::read(), 2)
        };
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let proposals = SearchAgent::new(facts)
            .expect("the built-in structures parse")
            .propose(&brief(&instance, Some(structure), scratch.path()), 100_000)
            .expect("the agent proposes");
        let split = proposals
            .iter()
            .find(|proposal| proposal.hypothesis.contains("workers=2"))
            .unwrap_or_else(|| panic!("{structure} has no configuration with two threads"));
        let alone = proposals.iter().find(|p| p.hypothesis.contains("workers=1"));
        assert!(alone.is_some(), "{structure} has none with one thread");
        let candidate = Candidate::load(&split.folder).expect("a proposal is a candidate");
        let flags = &candidate.cpu().expect("a CPU candidate").flags;
        assert!(flags.iter().any(|flag| flag == "-fopenmp"), "{flags:?}");
        driver::run(
            &instance,
            &driver::cases(&instance),
            &split.folder,
            flags,
            scratch.path(),
        )
        .unwrap_or_else(|cause| panic!("{}: {cause}", split.hypothesis));
    }
}

#[test]
fn the_same_seed_and_history_give_the_same_bytes() {
    let task = Task::load(tasks().join("softmax")).expect("a shipped task loads");
    let instance = task.instances().remove(0);
    let digests = |agent: &mut SearchAgent| {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let proposals = agent
            .propose(&brief(&instance, None, scratch.path()), 8)
            .expect("the agent proposes");
        proposals
            .iter()
            .map(|proposal| {
                let candidate = Candidate::load(&proposal.folder).expect("a proposal is a candidate");
                (proposal.hypothesis.clone(), candidate.digest())
            })
            .collect::<Vec<_>>()
    };
    let first = digests(&mut agent());
    assert_eq!(first.len(), 8);
    assert_eq!(first, digests(&mut agent()));
    let mut used = agent();
    digests(&mut used);
    assert_eq!(first, digests(&mut used), "what was asked before must not matter");
}

#[test]
fn every_shipped_task_has_directions_and_short_contracts() {
    let mut named = BTreeSet::new();
    for entry in std::fs::read_dir(tasks()).expect("the tasks are listed") {
        let folder = entry.expect("an entry").path();
        let task = Task::load(&folder).expect("a shipped task loads");
        let lines = task.text().lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 20, "{} has {lines} lines", folder.display());
        for instance in task.instances_on(Backend::Cpu, &[]).expect("instances") {
            let scratch = tempfile::tempdir().expect("a temporary folder");
            let directions = agent()
                .directions(&brief(&instance, None, scratch.path()))
                .expect("directions");
            assert!(!directions.is_empty(), "{} has no direction", instance.id());
            assert!(
                directions
                    .iter()
                    .all(|direction| direction.value.is_finite() && direction.value > 0.0)
            );
        }
        named.insert(task.contract().name.clone());
    }
    assert!(named.len() >= 14, "only {named:?}");
}
