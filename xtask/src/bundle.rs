//! Compiles CUDA candidates ahead of a machine with a GPU: cubins, and launch plans with every number known.
//!
//! `bench/check_structures.py` and `bench/torch_peers.py` read the bundle there, where neither Rust nor a compiler is
//! needed. For the same numbers of blocks the device must be the one named by `--sm-count`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ksmith_box::Level;
use ksmith_machine::{LocalHost, Machine, Toolchain};
use ksmith_search::{Facts, SearchAgent};
use ksmith_task::candidate::CudaPlan;
use ksmith_task::expr::Value as Number;
use ksmith_task::{AxisValues, Backend, Bound, Brief, Candidate, Instance, Role, ScalarValue, Task};
use ksmith_worker::cuda::{self, CompileOptions, Cubin, DeviceFacts, Param, ResolvedStep};
use serde_json::{Value, json};

use crate::Failure;

/// Seed of the offline agent.
const SEED: u64 = 7;

/// Shapes of a task beside its workloads and probes, at most.
const ODD_SHAPES: usize = 6;

#[derive(clap::Args)]
pub(crate) struct BundleArgs {
    /// Where to write `bundle.json` and the cubins
    #[arg(long)]
    out: PathBuf,
    /// Architecture of the cubins
    #[arg(long, default_value = "sm_90a")]
    arch: String,
    /// Multiprocessors of the device that will run them
    #[arg(long, default_value_t = 132)]
    sm_count: i32,
    /// Folder with `toolchains/`, as `ksmith toolchain cuda --install` made it; the default is its own
    #[arg(long)]
    data: Option<PathBuf>,
    /// Tasks by name; the default is every task with a CUDA baseline
    #[arg(long, value_delimiter = ',')]
    tasks: Vec<String>,
    /// A candidate folder instead of baselines and structures; needs one task and `--type`
    #[arg(long)]
    candidate: Option<PathBuf>,
    /// Champions beside baselines and structures: folders TASK-TYPE-ANYTHING, as `ksmith export` writes them
    #[arg(long)]
    champions: Option<PathBuf>,
    /// Dtype of the variable T, such as bf16; the default is all
    #[arg(long = "type")]
    dtype: Option<String>,
    /// First configurations of each structure
    #[arg(long, default_value_t = 1)]
    configs: usize,
    /// Leave out the shapes that only test correctness
    #[arg(long)]
    speed_only: bool,
    /// Time a neighbour of the last workload too: every axis one step off
    #[arg(long)]
    beside: bool,
}

pub(crate) fn bundle(args: &BundleArgs) -> Result<ExitCode, Failure> {
    let data = args.data.clone().unwrap_or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        home.join(".local/share/ksmith")
    });
    let toolchain = Toolchain::find(&LocalHost::new(), &data)
        .ok_or("no CUDA toolchain; `ksmith toolchain cuda --install` fetches one")?;
    let maker = Maker {
        // The compiler's box shows the library's folder, not where a link on the way to it leads.
        library: toolchain
            .nvrtc
            .as_ref()
            .and_then(|path| fs::canonicalize(path).ok()),
        device: device(&args.arch, args.sm_count)?,
        args,
    };
    fs::create_dir_all(&args.out)?;
    let mut entries = Vec::new();
    for name in tasks(&args.tasks)? {
        let task = Task::load(Path::new("tasks").join(&name))?;
        for instance in task.instances_on(Backend::Cuda, &[])? {
            let wanted = args.dtype.as_deref();
            if wanted.is_some_and(|wanted| instance.types().iter().any(|(_, dtype)| dtype.name() != wanted)) {
                continue;
            }
            let scratch = tempfile::tempdir()?;
            for (structure, label, folder) in maker.candidates(&instance, scratch.path())? {
                let entry = maker
                    .entry(&instance, &structure, &label, &folder)
                    .map_err(|error| format!("{structure} for {}: {error}", instance.id()))?;
                println!("{} {structure} {label}", instance.id());
                entries.push(entry);
            }
        }
    }
    let count = entries.len();
    let text = json!({ "schema": 1, "arch": args.arch, "sm_count": args.sm_count, "entries": entries });
    fs::write(args.out.join("bundle.json"), serde_json::to_vec(&text)?)?;
    println!("{count} candidates in {}", args.out.display());
    Ok(ExitCode::SUCCESS)
}

fn tasks(chosen: &[String]) -> Result<Vec<String>, Failure> {
    if !chosen.is_empty() {
        return Ok(chosen.to_vec());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir("tasks")? {
        let entry = entry?;
        if entry.path().join("baseline/cuda").is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// What launch plans ask of a device: the limits of its architecture (CUDA C++ Programming Guide, table of compute
/// capabilities).
fn device(arch: &str, sm_count: i32) -> Result<DeviceFacts, Failure> {
    let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
    let (major, minor) = digits.split_at(digits.len().saturating_sub(1));
    let capability = (major.parse()?, minor.parse()?);
    let (per_block, per_sm, threads) = match capability {
        (8, 6 | 9) => (101_376, 102_400, 1536),
        (8, _) => (166_912, 167_936, 2048),
        (12, _) => (101_376, 102_400, 1536),
        _ => (232_448, 233_472, 2048),
    };
    Ok(DeviceFacts {
        name: arch.to_owned(),
        uuid: String::new(),
        driver: 13000,
        capability,
        sm_count,
        l2_bytes: 50 << 20,
        memory_bytes: 80 << 30,
        shared_per_block: per_block,
        shared_per_sm: per_sm,
        threads_per_sm: threads,
        registers_per_sm: 65_536,
        pageable_access: false,
    })
}

struct Maker<'a> {
    library: Option<PathBuf>,
    device: DeviceFacts,
    args: &'a BundleArgs,
}

/// Structure, configuration, folder.
type Found = (String, String, PathBuf);

impl Maker<'_> {
    /// Baseline and structures of an instance; the structures lie below `scratch`.
    fn candidates(&self, instance: &Instance, scratch: &Path) -> Result<Vec<Found>, Failure> {
        if let Some(folder) = &self.args.candidate {
            return Ok(vec![("candidate".to_owned(), String::new(), folder.clone())]);
        }
        let mut found = Vec::new();
        if let Some(folder) = instance.task().contract().baseline.get(&Backend::Cuda) {
            let folder = instance.task().dir().join(folder);
            found.push(("baseline".to_owned(), String::new(), folder));
        }
        found.extend(self.champions(instance)?);
        let mut facts = Facts::of(&Machine::read(), 1);
        facts.sm = i64::from(10 * self.device.capability.0 + self.device.capability.1);
        let mut agent = SearchAgent::new(facts)?;
        let brief = |direction: Option<&str>, out: &Path| {
            Brief::opening(instance, Backend::Cuda, direction, SEED, out)
        };
        for direction in agent.directions(&brief(None, scratch))? {
            let brief = brief(Some(&direction.name), &scratch.join(&direction.name));
            let proposals = agent.propose(&brief, self.args.configs)?;
            for proposal in proposals
                .into_iter()
                .filter(|made| made.direction == direction.name)
            {
                let label = proposal
                    .hypothesis
                    .rsplit_once('[')
                    .map_or(String::new(), |(_, label)| label.trim_end_matches(']').to_owned());
                found.push((direction.name.clone(), label, proposal.folder));
            }
        }
        Ok(found)
    }

    /// Champions of this instance.
    fn champions(&self, instance: &Instance) -> Result<Vec<Found>, Failure> {
        let Some(folder) = &self.args.champions else {
            return Ok(Vec::new());
        };
        let types: String = (instance.types().iter())
            .map(|(_, dtype)| format!("-{}", dtype.name()))
            .collect();
        let prefix = format!("{}{types}-", instance.task().contract().name);
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(label) = name.strip_prefix(&prefix) {
                found.push(("champion".to_owned(), label.to_owned(), entry.path()));
            }
        }
        found.sort();
        Ok(found)
    }

    fn entry(
        &self,
        instance: &Instance,
        structure: &str,
        label: &str,
        folder: &Path,
    ) -> Result<Value, Failure> {
        let candidate = Candidate::load(folder)?;
        candidate.check_policy(instance)?;
        let plan = candidate.cuda().ok_or("not a CUDA candidate")?;
        let cubin = self.compile(instance, &candidate, plan)?;
        let digest = ksmith_task::Digest::of(&cubin.image).to_string();
        let file = format!(
            "{}.cubin",
            digest.trim_start_matches("sha256:").get(..16).unwrap_or("code")
        );
        fs::write(self.args.out.join(&file), &cubin.image)?;
        let mut shapes = Vec::new();
        for (name, axes, timed) in self.shapes(instance) {
            shapes.push(self.shape(instance, plan, &cubin, &name, &axes, timed)?);
        }
        Ok(json!({
            "task": instance.task().contract().name,
            "types": instance.types().iter().map(|(name, dtype)| (name.clone(), dtype.name())).collect::<std::collections::BTreeMap<_, _>>(),
            "structure": structure,
            "config": label,
            "cubin": file,
            "shapes": shapes,
        }))
    }

    fn compile(&self, instance: &Instance, candidate: &Candidate, plan: &CudaPlan) -> Result<Cubin, Failure> {
        let options = CompileOptions {
            sources: (candidate.sources.iter())
                .map(|source| (source.path.to_string_lossy().into_owned(), source.text.clone()))
                .collect(),
            kernels: plan.kernels(),
            arch: self.args.arch.clone(),
            flags: [plan.flags.clone(), instance.defines()].concat(),
            include: Vec::new(),
            library: self.library.clone(),
        };
        Ok(cuda::compile(&options, Level::Limits, false)?)
    }

    /// Workloads, and small shapes at which only correctness is looked at.
    fn shapes(&self, instance: &Instance) -> Vec<(String, AxisValues, bool)> {
        let mut shapes: Vec<(String, AxisValues, bool)> = instance
            .workloads(Backend::Cuda)
            .map(|workload| (workload.name.clone(), workload.axes.clone(), true))
            .collect();
        if self.args.beside
            && let Some((name, axes, _)) = shapes.last()
        {
            let mut near = axes.clone();
            for shape in instance.neighbour_shapes(axes) {
                near.extend(
                    shape
                        .into_iter()
                        .filter(|(axis, size)| axes.get(axis) != Some(size)),
                );
            }
            if instance.bind(&near).is_ok() {
                shapes.push((format!("beside {name}"), near, true));
            }
        }
        if self.args.speed_only {
            return shapes;
        }
        let Some((_, small, _)) = shapes.first().cloned() else {
            return shapes;
        };
        let mut more: Vec<(String, AxisValues)> = Vec::new();
        for probe in instance
            .task()
            .contract()
            .hidden
            .probes
            .iter()
            .filter(|probe| !probe.axes.is_empty())
        {
            let mut axes = small.clone();
            axes.extend(probe.axes.iter().map(|(name, size)| (name.clone(), *size)));
            more.push((probe.name.clone(), axes));
        }
        more.extend(
            instance
                .neighbour_shapes(&small)
                .into_iter()
                .map(|axes| ("neighbour".to_owned(), axes)),
        );
        let odd = instance.odd_shapes();
        let step = odd.len().div_ceil(ODD_SHAPES).max(1);
        more.extend(odd.into_iter().step_by(step).map(|axes| ("odd".to_owned(), axes)));
        for (name, axes) in more {
            if instance.bind(&axes).is_ok() && !shapes.iter().any(|(_, known, _)| *known == axes) {
                shapes.push((name, axes, false));
            }
        }
        shapes
    }

    fn shape(
        &self,
        instance: &Instance,
        plan: &CudaPlan,
        cubin: &Cubin,
        name: &str,
        axes: &AxisValues,
        timed: bool,
    ) -> Result<Value, Failure> {
        let bound = instance.bind(axes)?;
        let scalars: Vec<f64> = bound.scalars.iter().map(|scalar| fixed(&scalar.value)).collect();
        let resolved = cuda::resolve(plan, &bound, &scalars, &self.device, &|_| None)?;
        let mut steps = Vec::new();
        for step in &resolved.steps {
            steps.push(match step {
                ResolvedStep::Fill { buffer, value, bytes } => {
                    json!({ "fill": { "buffer": buffer, "value": value, "bytes": bytes } })
                }
                ResolvedStep::Launch { launch, params } => {
                    let kernel = resolved
                        .kernels
                        .get(launch.kernel)
                        .and_then(|name| cubin.lowered.get(name));
                    json!({
                        "kernel": kernel.ok_or("a kernel without a lowered name")?,
                        "grid": launch.grid,
                        "block": launch.block,
                        "cluster": launch.cluster,
                        "shared": launch.shared,
                        "cooperative": launch.cooperative,
                        "pdl": launch.pdl,
                        "params": params.iter().map(param).collect::<Result<Vec<_>, _>>()?,
                    })
                }
            });
        }
        Ok(json!({
            "name": name,
            "axes": axes,
            "timed": timed,
            "cost_bytes": bound.cost_bytes,
            "tensors": tensors(&bound),
            "scalars": (bound.scalars.iter().zip(&scalars))
                .map(|(scalar, value)| (scalar.name.clone(), *value))
                .collect::<std::collections::BTreeMap<_, _>>(),
            "workspaces": resolved.workspaces,
            "steps": steps,
        }))
    }
}

fn fixed(value: &ScalarValue) -> f64 {
    match value {
        ScalarValue::Fixed(Number::Int(value)) => *value as f64,
        ScalarValue::Fixed(value) => value.as_f64().unwrap_or(0.0),
        ScalarValue::Drawn(_) => 1.0,
    }
}

fn param(param: &Param) -> Result<Value, Failure> {
    Ok(match param {
        Param::Buffer(index) => json!({ "buffer": index }),
        Param::Bytes(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "bytes": hex })
        }
        Param::Map(_) => return Err("tensor maps are not in bundles".into()),
    })
}

fn tensors(bound: &Bound) -> Vec<Value> {
    bound
        .tensors
        .iter()
        .map(|tensor| {
            let (role, tolerance) = match &tensor.role {
                Role::Input(_) => ("input", Value::Null),
                Role::Output(rule) => {
                    let t = rule.tolerance;
                    (
                        "output",
                        json!({ "atol": t.atol, "rtol": t.rtol, "ctol": t.ctol }),
                    )
                }
            };
            json!({
                "name": tensor.name,
                "dtype": tensor.dtype.name(),
                "shape": tensor.shape,
                "role": role,
                "tolerance": tolerance,
            })
        })
        .collect()
}
