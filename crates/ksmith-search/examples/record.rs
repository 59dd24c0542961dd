//! Records a structure's whole space: renders, compiles and times every configuration, one JSON line each.
//!
//! The lines feed `Replay`, so that strategies are compared without measuring. Times are minima over interleaved
//! rounds of the same process, good enough to rank configurations and for nothing else: no verdict uses them.
//!
//! `cargo run --release -p ksmith-search --example record -- TASK STRUCTURE >> bench/spaces/recorded.jsonl`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for developers")]

#[path = "../tests/driver/mod.rs"]
#[allow(dead_code, reason = "each user needs a part")]
mod driver;

use std::path::Path;
use std::process::Command;

use ksmith_machine::Machine;
use ksmith_search::{CacheEntry, Facts, SearchAgent};
use ksmith_task::{Backend, Candidate, Task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, structure] = arguments.as_slice() else {
        return Err("usage: record TASK STRUCTURE".into());
    };
    let machine = Machine::read();
    let task = Task::load(task)?;
    let instance = task
        .instances()
        .into_iter()
        .next()
        .ok_or("the task has no instance")?;
    let scratch = tempfile::tempdir()?;
    let brief = driver::brief(&instance, Some(structure), scratch.path());
    let mut proposals = SearchAgent::new(Facts::of(&machine, 1))?.propose(&brief, 100_000)?;
    proposals.retain(|proposal| proposal.direction == *structure);

    let mut libraries = vec![library(
        &task.dir().join("baseline/cpu"),
        scratch.path(),
        "baseline",
    )?];
    for (number, proposal) in proposals.iter().enumerate() {
        libraries.push(library(&proposal.folder, scratch.path(), &number.to_string())?);
    }
    let mut logs = vec![0.0; libraries.len()];
    let mut weights = 0.0;
    for workload in instance.workloads(Backend::Cpu) {
        let times = driver::time(&instance, &workload.axes, &libraries, scratch.path())?;
        for (log, time) in logs.iter_mut().zip(&times) {
            *log += workload.weight * (time / times[0]).ln();
        }
        weights += workload.weight;
    }
    for (proposal, log) in proposals.iter().zip(&logs[1..]) {
        let label = proposal
            .hypothesis
            .rsplit_once('[')
            .map_or("", |(_, label)| label.trim_end_matches(']'));
        let entry = CacheEntry {
            schema: 1,
            machine: machine.digest().to_string(),
            family: task.contract().family.clone(),
            instance: instance.id(),
            structure: structure.clone(),
            config: label.to_owned(),
            prior: proposal.predicted_gain.map_or(1.0, |gain| 1.0 / gain),
            time: Some((log / weights).exp()),
            code: "recorded".to_owned(),
        };
        println!("{}", serde_json::to_string(&entry)?);
    }
    eprintln!(
        "{} configurations of {structure} on {}",
        proposals.len(),
        instance.id()
    );
    Ok(())
}

fn library(folder: &Path, scratch: &Path, name: &str) -> Result<String, Box<dyn std::error::Error>> {
    let candidate = Candidate::load(folder)?;
    let flags = &candidate.cpu().ok_or("no CPU candidate")?.flags;
    let path = scratch.join(format!("{name}.so"));
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-w"])
        .args(flags)
        .arg("-o")
        .arg(&path)
        .arg(folder.join("kernel.c"))
        .arg("-lm")
        .output()?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned().into());
    }
    Ok(path.display().to_string())
}
