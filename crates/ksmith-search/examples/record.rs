//! Records a structure's whole space: renders, compiles and times every configuration, one JSON line each.
//!
//! The lines feed `Replay`, so that strategies are compared without measuring. Times are minima over interleaved
//! rounds of the same process, good enough to rank configurations and for nothing else: no verdict uses them. A
//! configuration that does not compile is recorded as failed.
//!
//! `cargo run --release -p ksmith-search --example record -- TASK STRUCTURE [T=DTYPE] [x86-64-v3]`
//!
//! `x86-64-v3` records what a processor without AVX-512 would have in its space, compiled for it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for developers")]

#[path = "../tests/driver/mod.rs"]
#[allow(dead_code, reason = "each user needs a part")]
mod driver;

use std::path::Path;
use std::process::Command;

use ksmith_machine::Machine;
use ksmith_search::{CacheEntry, Facts, SearchAgent, mean_axes};
use ksmith_task::{Backend, Brief, Candidate, Task};

const NARROW: &str = "x86-64-v3";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, structure, options @ ..] = arguments.as_slice() else {
        return Err("usage: record TASK STRUCTURE [T=DTYPE] [x86-64-v3]".into());
    };
    let narrow = options.iter().any(|option| option == NARROW);
    let mut facts = Facts::of(&Machine::read(), 1);
    if narrow {
        (facts.vector_bits, facts.vector_registers) = (256, 16);
        (facts.vnni, facts.bf16) = (false, false);
    }
    let task = Task::load(task)?;
    let instance = task
        .instances()
        .into_iter()
        .find(|instance| {
            let types = options.iter().filter(|option| option.contains('='));
            types
                .into_iter()
                .all(|option| instance.id().contains(&format!("[{option}]")))
        })
        .ok_or("the task has no such instance")?;
    let scratch = tempfile::tempdir()?;
    let brief = Brief::opening(&instance, Backend::Cpu, Some(structure), 7, scratch.path());
    let mut proposals = SearchAgent::new(facts)?.propose(&brief, 100_000)?;
    proposals.retain(|proposal| proposal.direction == *structure);

    let march = narrow.then_some(NARROW);
    let baseline = task.dir().join("baseline/cpu");
    let defines = instance.defines();
    let mut libraries = vec![library(&baseline, scratch.path(), "baseline", &defines, march)?];
    let mut times = vec![None; proposals.len()];
    let mut built = Vec::new();
    for (number, proposal) in proposals.iter().enumerate() {
        match library(
            &proposal.folder,
            scratch.path(),
            &number.to_string(),
            &defines,
            march,
        ) {
            Ok(library) => {
                libraries.push(library);
                built.push(number);
            }
            Err(cause) => eprintln!("{}: {cause}", proposal.hypothesis),
        }
    }
    let mut logs = vec![0.0; libraries.len()];
    let mut weights = 0.0;
    for workload in instance.workloads(Backend::Cpu) {
        let found = driver::time(&instance, &workload.axes, &libraries, scratch.path())?;
        for (log, time) in logs.iter_mut().zip(&found) {
            *log += workload.weight * (time / found[0]).ln();
        }
        weights += workload.weight;
    }
    for (number, log) in built.iter().zip(&logs[1..]) {
        times[*number] = Some((log / weights).exp());
    }
    for (proposal, time) in proposals.iter().zip(times) {
        let label = proposal
            .hypothesis
            .rsplit_once('[')
            .map_or("", |(_, label)| label.trim_end_matches(']'));
        let entry = CacheEntry {
            schema: 2,
            machine: if narrow {
                "recorded-avx2"
            } else {
                "recorded-avx512"
            }
            .to_owned(),
            family: task.contract().family.clone(),
            instance: instance.id(),
            structure: structure.clone(),
            axes: mean_axes(instance.workloads(Backend::Cpu).map(|workload| &workload.axes)),
            config: label.to_owned(),
            prior: proposal.predicted_gain.map_or(1.0, |gain| 1.0 / gain),
            time,
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

/// Builds a candidate; `march` replaces the flag of the same name.
fn library(
    folder: &Path,
    scratch: &Path,
    name: &str,
    defines: &[String],
    march: Option<&str>,
) -> Result<String, Box<dyn std::error::Error>> {
    let candidate = Candidate::load(folder)?;
    let flags = &candidate.cpu().ok_or("no CPU candidate")?.flags;
    let path = scratch.join(format!("{name}.so"));
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-w"])
        .args(flags)
        .args(march.map(|march| format!("-march={march}")))
        .args(defines)
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
