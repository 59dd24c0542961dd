//! The baselines of shipped tasks pass every correctness gate of their own contracts.
//!
//! `KSMITH_TASKS=softmax,gemm` chooses tasks; `all` takes every one.

use std::path::Path;
use std::time::Instant;

use ksmith_box::Level;
use ksmith_judge::{Effort, Judge, JudgeOptions};
use ksmith_task::{Backend, Candidate, Task};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

#[test]
fn baselines_of_shipped_tasks_pass_every_correctness_gate() {
    let tasks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks");
    let chosen = std::env::var("KSMITH_TASKS").unwrap_or_else(|_| "softmax,topk_gate,kdattn".to_owned());
    let mut names: Vec<String> = chosen.split(',').map(str::to_owned).collect();
    if chosen == "all" {
        names = std::fs::read_dir(&tasks)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| tasks.join(name).join("task.toml").is_file())
            .collect();
        names.sort();
    }
    let mut failures = Vec::new();
    for name in names {
        let task = Task::load(tasks.join(&name)).unwrap();
        let Some(folder) = task.contract().baseline.get(&Backend::Cpu) else {
            continue;
        };
        let baseline = Candidate::load(task.dir().join(folder)).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut options = JudgeOptions::new(state.path());
        options.least = Level::Limits;
        options.effort = Effort::Correctness;
        let started = Instant::now();
        let mut judge = match Judge::open(&task.instances()[0], options) {
            Ok(judge) => judge,
            Err(error) => {
                failures.push(format!("{name}: {error}: {error:?}"));
                continue;
            }
        };
        println!("{name}: opened in {:.1} s", started.elapsed().as_secs_f64());
        let verdict = judge.score(&baseline);
        for gate in &verdict.gates {
            println!(
                "  {:13} {:9.1} ms {}",
                gate.name.to_string(),
                gate.ms,
                gate.evidence
            );
        }
        if verdict.code != "gain/not-measured" {
            failures.push(format!("{name}: {} {:?}", verdict.code, verdict.gates.last()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
