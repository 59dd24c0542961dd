//! Every CUDA structure compiles for every architecture we name, and its machine code is what its tags promise.
//!
//! Real compilers, no GPU: NVRTC and `nvdisasm` of a system toolkit or of the private one. With `KSMITH_TEST_INSTALL`
//! set, as in continuous integration, a missing private toolchain is fetched first; without it the test says so.

#![allow(clippy::print_stderr, reason = "a test that is skipped or partial says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ksmith_box::Level;
use ksmith_insight::sass::{self, Expect, Mix};
use ksmith_machine::{LocalHost, Machine, Toolchain, toolchain};
use ksmith_search::{Facts, Library, SearchAgent, Structure};
use ksmith_task::{Backend, Brief, Candidate, Instance, Task};
use ksmith_worker::cuda::{self, CompileOptions, Cubin, DeviceFacts, ResolvedStep};

ksmith_box::intercept_tests!(ksmith_worker::intercept);

/// Architectures and their compute capability times ten.
const ARCHES: [(&str, i64); 4] = [("sm_90a", 90), ("sm_80", 80), ("sm_89", 89), ("sm_100a", 100)];

/// Accesses of local memory that are put up with on an architecture that is not measured: a register or two, by the
/// compiler's own choice of how many a thread gets.
const SPILLED: u32 = 4;

fn tasks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks")
}

fn agent(sm: i64) -> SearchAgent {
    let mut facts = Facts::of(&Machine::read(), 1);
    facts.sm = sm;
    SearchAgent::new(facts).expect("the built-in structures parse")
}

fn device(sm: i64) -> DeviceFacts {
    let (per_block, per_sm, threads) = match sm {
        89 => (101_376, 102_400, 1536),
        80 => (166_912, 167_936, 2048),
        _ => (232_448, 233_472, 2048),
    };
    DeviceFacts {
        name: format!("sm_{sm}"),
        uuid: String::new(),
        driver: 13000,
        capability: ((sm / 10) as i32, (sm % 10) as i32),
        sm_count: 132,
        l2_bytes: 50 << 20,
        memory_bytes: 80 << 30,
        shared_per_block: per_block,
        shared_per_sm: per_sm,
        threads_per_sm: threads,
        registers_per_sm: 65_536,
        pageable_access: false,
    }
}

/// The first configuration of a structure for an instance; `None` where its preconditions exclude the device.
fn first(structure: &Structure, instance: &Instance, sm: i64, scratch: &Path) -> Option<Candidate> {
    let direction = Some(structure.manifest.name.as_str());
    let brief = Brief::opening(instance, Backend::Cuda, direction, 7, scratch);
    let proposals = agent(sm).propose(&brief, 1).expect("the agent proposes");
    let proposal = proposals
        .first()
        .filter(|proposal| proposal.direction == structure.manifest.name)?;
    let candidate = Candidate::load(&proposal.folder).expect("a proposal is a candidate");
    candidate
        .check_policy(instance)
        .expect("a proposal keeps the policy");
    Some(candidate)
}

/// Names of the kernels that the plan launches at these sizes.
fn launched(
    candidate: &Candidate,
    instance: &Instance,
    axes: &ksmith_task::AxisValues,
    sm: i64,
) -> Vec<String> {
    let bound = instance.bind(axes).expect("a shape binds");
    let scalars = vec![1.0; bound.scalars.len()];
    let plan = candidate.cuda().expect("a CUDA candidate");
    let resolved = cuda::resolve(plan, &bound, &scalars, &device(sm), &|_| None)
        .unwrap_or_else(|error| panic!("{} at {axes:?}: {error}", instance.id()));
    let used = |step: &ResolvedStep| match step {
        ResolvedStep::Launch { launch, .. } => resolved.kernels.get(launch.kernel).cloned(),
        ResolvedStep::Fill { .. } => None,
    };
    resolved.steps.iter().filter_map(used).collect()
}

#[test]
fn every_plan_resolves_at_every_kind_of_shape() {
    let library = Library::built_in().expect("the built-in structures parse");
    let mut plans = 0;
    for structure in library
        .structures()
        .iter()
        .filter(|found| found.manifest.backend == Backend::Cuda)
    {
        for operator in &structure.manifest.operators {
            let task = Task::load(tasks().join(operator)).expect("a shipped task loads");
            for instance in task.instances_on(Backend::Cuda, &[]).expect("instances") {
                let scratch = tempfile::tempdir().expect("a temporary folder");
                let candidate = first(structure, &instance, 90, scratch.path())
                    .unwrap_or_else(|| panic!("{} fits {}", structure.manifest.name, instance.id()));
                let workloads = instance
                    .workloads(Backend::Cuda)
                    .map(|workload| workload.axes.clone());
                for axes in workloads
                    .chain(instance.odd_shapes())
                    .chain(instance.corner_shapes())
                {
                    if instance.bind(&axes).is_ok() {
                        assert!(!launched(&candidate, &instance, &axes, 90).is_empty());
                    }
                }
                plans += 1;
            }
        }
    }
    assert!(plans >= 35, "only {plans} plans");
}

#[test]
fn every_task_of_the_device_table_has_workloads_a_baseline_and_structures() {
    let mut named = Vec::new();
    for entry in std::fs::read_dir(tasks()).expect("the tasks are listed") {
        let task = Task::load(entry.expect("an entry").path()).expect("a shipped task loads");
        let Some(baseline) = task.contract().baseline.get(&Backend::Cuda) else {
            continue;
        };
        let baseline = Candidate::load(task.dir().join(baseline)).expect("the baseline loads");
        for instance in task.instances_on(Backend::Cuda, &[]).expect("instances") {
            baseline
                .check_policy(&instance)
                .expect("the baseline keeps the policy");
            let scratch = tempfile::tempdir().expect("a temporary folder");
            let brief = Brief::opening(&instance, Backend::Cuda, None, 7, scratch.path());
            assert!(brief.workloads.len() >= 2, "{}", instance.id());
            let directions = agent(90).directions(&brief).expect("directions");
            assert!(!directions.is_empty(), "{} has no direction", instance.id());
            for workload in &brief.workloads {
                assert!(!launched(&baseline, &instance, &workload.axes, 90).is_empty());
            }
        }
        named.push(task.contract().name.clone());
    }
    assert!(named.len() >= 18, "only {named:?}");
}

/// A toolchain that compiles and disassembles, and how it was found.
fn toolchain() -> Result<Toolchain, String> {
    let host = LocalHost::new();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda");
    for place in [home.join(".local/share/ksmith"), own.clone()] {
        if let Some(found) =
            Toolchain::find(&host, &place).filter(|found| found.nvdisasm.is_some() && found.nvrtc.is_some())
        {
            return Ok(found);
        }
    }
    if std::env::var_os("KSMITH_TEST_INSTALL").is_none() {
        return Err("there is no CUDA toolchain; KSMITH_TEST_INSTALL=1 fetches it".to_owned());
    }
    toolchain::install(&host, &own, &mut |_| ())
        .map(|installed| installed.toolchain)
        .map_err(|error| error.to_string())
}

fn compile(candidate: &Candidate, instance: &Instance, arch: &str, tools: &Toolchain) -> Cubin {
    let plan = candidate.cuda().expect("a CUDA candidate");
    let options = CompileOptions {
        sources: (candidate.sources.iter())
            .map(|source| (source.path.to_string_lossy().into_owned(), source.text.clone()))
            .collect(),
        kernels: plan.kernels(),
        arch: arch.to_owned(),
        flags: [plan.flags.clone(), instance.defines()].concat(),
        include: Vec::new(),
        // The compiler's box shows the library's folder, not where a link on the way to it leads.
        library: tools
            .nvrtc
            .as_ref()
            .and_then(|path| std::fs::canonicalize(path).ok()),
    };
    cuda::compile(&options, Level::Limits, false)
        .unwrap_or_else(|error| panic!("{} for {arch}: {error}", candidate.dir.display()))
}

/// Instruction mix of each kernel by its lowered name.
fn disassemble(cubin: &Cubin, tools: &Toolchain, scratch: &Path) -> BTreeMap<String, Mix> {
    let file = scratch.join("kernel.cubin");
    std::fs::write(&file, &cubin.image).expect("the cubin is written");
    let tool = tools.nvdisasm.as_ref().expect("a disassembler");
    let output = Command::new(tool)
        .arg("-c")
        .arg(&file)
        .output()
        .expect("nvdisasm runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let read = sass::analyse(&text, Expect::default());
    if !read.report.incomplete.is_empty() {
        eprintln!("not analysed: {}", read.report.incomplete.join(", "));
    }
    read.kernels
        .into_iter()
        .map(|kernel| (kernel.name, kernel.whole))
        .collect()
}

fn wide(accesses: &BTreeMap<u32, u32>) -> bool {
    let bytes = |widths: &mut dyn Iterator<Item = (&u32, &u32)>| -> u32 {
        widths.map(|(bits, count)| bits / 8 * count).sum()
    };
    let all = bytes(&mut accesses.iter());
    let narrow = bytes(&mut accesses.iter().filter(|(bits, _)| **bits < 128));
    // The text holds scalar loops for what is left at the ends as well, unrolled.
    all > 0 && narrow * 2 <= all
}

/// What is wrong with the code of one structure, as lines.
fn faults(
    structure: &Structure,
    candidate: &Candidate,
    instance: &Instance,
    cubin: &Cubin,
    mixes: &BTreeMap<String, Mix>,
    sm: i64,
) -> Vec<String> {
    let manifest = &structure.manifest;
    let tagged = |tag: &str| manifest.tags.iter().any(|known| known == tag);
    let largest = instance.workloads(Backend::Cuda).last().expect("a workload");
    let hot = launched(candidate, instance, &largest.axes, sm);
    let mut faults = Vec::new();
    for (name, lowered) in &cubin.lowered {
        let Some(mix) = mixes.get(lowered) else {
            faults.push(format!("`{name}` is not in the disassembly"));
            continue;
        };
        if mix.local > if sm == 90 { 0 } else { SPILLED } {
            faults.push(format!("`{name}`: {} accesses of local memory", mix.local));
        }
        // The first launch at the largest workload does the work; a second one adds up a little.
        if hot.first() != Some(name) {
            continue;
        }
        if (tagged("vector-access") || tagged("vector-load")) && !wide(&mix.global_loads) {
            faults.push(format!("`{name}`: global loads {:?}", mix.global_loads));
        }
        if tagged("vector-access") && !wide(&mix.global_stores) {
            faults.push(format!("`{name}`: global stores {:?}", mix.global_stores));
        }
    }
    faults
}

/// The task with f16 in the place of bf16, loaded from a folder of its own.
fn in_half(operator: &str, scratch: &Path) -> Option<Task> {
    let from = tasks().join(operator);
    let text = std::fs::read_to_string(from.join("task.toml")).expect("a shipped task");
    if !text.contains("\"bf16\"") {
        return None;
    }
    let folder = scratch.join(operator);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("task.toml"), text.replace("bf16", "f16")).expect("a task");
    std::fs::copy(from.join("reference.c"), folder.join("reference.c")).expect("a reference");
    Some(Task::load(&folder).expect("the task with f16 loads"))
}

#[test]
fn every_structure_compiles_for_every_architecture_to_what_its_tags_promise() {
    let tools = match toolchain() {
        Ok(tools) => tools,
        Err(why) => {
            eprintln!("skipped: 1 test, {why}");
            return;
        }
    };
    let library = Library::built_in().expect("the built-in structures parse");
    let (mut compiled, mut excluded, mut wrong) = (0, Vec::new(), Vec::new());
    for structure in library
        .structures()
        .iter()
        .filter(|found| found.manifest.backend == Backend::Cuda)
    {
        for operator in &structure.manifest.operators {
            let scratch = tempfile::tempdir().expect("a temporary folder");
            let task = Task::load(tasks().join(operator)).expect("a shipped task loads");
            let mut instances = task.instances_on(Backend::Cuda, &[]).expect("instances");
            let all = instances.len();
            let half = in_half(operator, scratch.path());
            instances.extend(half.iter().flat_map(|task| {
                let mut found = task.instances_on(Backend::Cuda, &[]).expect("instances");
                found.split_off(1)
            }));
            for (arch, sm) in ARCHES {
                // All dtypes on the architecture that is measured, the widest packs on the others.
                let chosen = if sm == 90 {
                    &instances[..]
                } else {
                    &instances[all - 1..all]
                };
                for instance in chosen {
                    let folder = scratch.path().join(format!("{arch}-{}", instance.id()));
                    let Some(candidate) = first(structure, instance, sm, &folder) else {
                        excluded.push(format!("{} on {arch}", structure.manifest.name));
                        continue;
                    };
                    let cubin = compile(&candidate, instance, arch, &tools);
                    let mixes = disassemble(&cubin, &tools, scratch.path());
                    let found = faults(structure, &candidate, instance, &cubin, &mixes, sm);
                    wrong.extend(found.into_iter().map(|fault| {
                        format!("{} {} {arch}: {fault}", structure.manifest.name, instance.id())
                    }));
                    compiled += 1;
                }
            }
        }
    }
    if !excluded.is_empty() {
        eprintln!(
            "excluded by preconditions: {}: {}",
            excluded.len(),
            excluded.join(", ")
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compiled >= 100, "only {compiled} compiled");
}
