//! Every structure's first configuration on its task, through the judge: all correctness gates, no timing.
//!
//! `KSMITH_STRUCTURES=softmax-rows,gemm-panels` chooses structures; `KSMITH_INSTANCES=all` takes every dtype instance of
//! their tasks instead of the first.

use std::path::Path;

use ksmith_box::Level;
use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_machine::Machine;
use ksmith_search::{Facts, Library, SearchAgent};
use ksmith_task::{Backend, Brief, Candidate, Task};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

#[test]
fn the_first_configuration_of_every_structure_passes_the_correctness_gates_of_its_task() {
    let library = Library::built_in().expect("the built-in structures parse");
    let chosen = std::env::var("KSMITH_STRUCTURES").ok();
    let all = std::env::var("KSMITH_INSTANCES").is_ok_and(|value| value == "all");
    let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks");
    let (mut judged, mut skipped, mut failures) = (0, Vec::new(), Vec::new());
    for structure in library.structures() {
        let manifest = &structure.manifest;
        let wanted = |names: &String| names.split(',').any(|name| name == manifest.name);
        if manifest.backend != Backend::Cpu || !chosen.as_ref().is_none_or(wanted) {
            continue;
        }
        for operator in &manifest.operators {
            let task = Task::load(tasks.join(operator)).expect("a shipped task loads");
            for instance in task
                .instances_on(Backend::Cpu, &[])
                .expect("instances")
                .into_iter()
                .take(if all { usize::MAX } else { 1 })
            {
                let name = format!("{} on {}", manifest.name, instance.id());
                let scratch = tempfile::tempdir().expect("a temporary folder");
                let direction = Some(manifest.name.as_str());
                let brief = Brief::opening(&instance, Backend::Cpu, direction, 7, scratch.path());
                let proposals = SearchAgent::new(Facts::of(&Machine::read(), 1))
                    .and_then(|mut agent| agent.propose(&brief, 1))
                    .expect("the agent proposes");
                let Some(proposal) = proposals
                    .first()
                    .filter(|proposal| proposal.direction == manifest.name)
                else {
                    skipped.push(name);
                    continue;
                };
                let candidate = Candidate::load(&proposal.folder).expect("a proposal is a candidate");
                let state = tempfile::tempdir().expect("a temporary folder");
                let mut options = JudgeOptions::new(state.path());
                options.least = Level::Limits;
                options.effort = Effort::Correctness;
                let mut judge = match Judge::open(&instance, options) {
                    Ok(judge) => judge,
                    Err(error) => {
                        failures.push(format!("{name}: {error}"));
                        continue;
                    }
                };
                let verdict = judge.score(&candidate);
                judged += 1;
                if verdict.code != "gain/not-measured" {
                    failures.push(format!("{name}: {} {:?}", verdict.code, verdict.gates.last()));
                }
            }
        }
    }
    if !skipped.is_empty() {
        println!(
            "skipped: {} structures that this processor cannot run: {}",
            skipped.len(),
            skipped.join(", ")
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(judged > 0, "nothing was judged");
}
