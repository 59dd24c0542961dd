//! The float64 reference as device code, in a worker of its own.
//!
//! It is a candidate in form (sources and a launch plan), but its tensors are those of the C reference: floats as
//! `double`, integers as `int64_t`, dense and row-major, each output with a scale followed by `<name>_scale`. Inputs are
//! mapped read-only, and its outputs are copied away after each call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ksmith_task::candidate::CudaPlan;
use ksmith_task::{Bound, Candidate, DType, Instance, Role, Tensor, chain};
use ksmith_worker::cuda::{Buffer, BufferAccess, Cache, Cubin, KernelFacts, Worker, resolve};

use super::Device;
use crate::cases::ScalarDraw;

/// Time that it may take for one case.
const LIMIT: Duration = Duration::from_secs(20);

/// What a C reference includes, for a compiler without a C library: its functions are built in.
const HEADERS: [(&str, &str); 2] = [
    (
        "stdint.h",
        "#pragma once\ntypedef long long int64_t;\ntypedef unsigned long long uint64_t;\ntypedef int int32_t;\n\
         typedef unsigned int uint32_t;\n",
    ),
    (
        "math.h",
        "#pragma once\n#ifndef INFINITY\n#define INFINITY (1.0 / 0.0)\n#endif\n",
    ),
];

/// The expectation of one output in float64 (or 64-bit integers), on the device.
pub(super) struct Wide {
    pub(super) want: Buffer,
    pub(super) scale: Option<Buffer>,
}

/// A compiled reference and the worker that runs it.
pub(super) struct DeviceReference {
    plan: CudaPlan,
    cubin: Arc<Cubin>,
    kernels: Vec<String>,
    running: Option<Running>,
}

struct Running {
    worker: Worker,
    facts: Vec<KernelFacts>,
    laid: Option<Laid>,
}

/// Wide buffers of one shape: inputs, then outputs, each followed by its scale, then workspaces.
struct Laid {
    axes: Vec<(String, i64)>,
    scalars: Vec<f64>,
    buffers: Vec<Buffer>,
}

/// What the code of an instance's reference may include: the headers above and the reference in C.
fn headers(instance: &Instance) -> Result<Vec<(String, String)>, String> {
    let task = instance.task();
    let source = &task.contract().reference.source;
    let mut headers: Vec<(String, String)> = HEADERS
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    if source.extension().is_some_and(|ending| ending == "c") {
        let text = std::fs::read_to_string(task.dir().join(source)).map_err(|error| chain(&error))?;
        headers.push((source.display().to_string(), text));
    }
    Ok(headers)
}

impl DeviceReference {
    /// Compiles the reference in `folder`; the error is one line for the record.
    pub(super) fn open(device: &Device, instance: &Instance, folder: &Path) -> Result<Self, String> {
        let candidate = Candidate::load(folder).map_err(|error| chain(&error))?;
        let plan = candidate
            .cuda()
            .ok_or("a reference for the device needs `backend = \"cuda\"`")?
            .clone();
        let cubin = device
            .compiler
            .reference(instance, &candidate, headers(instance)?)?;
        Ok(Self {
            kernels: plan.kernels(),
            plan,
            cubin,
            running: None,
        })
    }

    /// Computes the expectations of inputs that lie on the device in the task's own types.
    pub(super) fn expect(
        &mut self,
        device: &Device,
        bound: &Bound,
        scalars: &[ScalarDraw],
        inputs: &[Buffer],
    ) -> Result<Vec<Wide>, String> {
        let scalars: Vec<f64> = scalars
            .iter()
            .map(|scalar| match scalar {
                ScalarDraw::Real(_, value) => *value,
                ScalarDraw::Whole(_, value) => *value as f64,
            })
            .collect();
        let again = self.running.is_some();
        match self.computed(device, bound, &scalars, inputs) {
            // A worker has a time limit of its own; one that outlived it is replaced once.
            Err(_) if again => {
                self.running = None;
                self.computed(device, bound, &scalars, inputs)
            }
            other => other,
        }
    }

    fn computed(
        &mut self,
        device: &Device,
        bound: &Bound,
        scalars: &[f64],
        inputs: &[Buffer],
    ) -> Result<Vec<Wide>, String> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start(device)?,
        };
        let known = running
            .laid
            .as_ref()
            .is_some_and(|laid| laid.axes == bound.axes && laid.scalars == scalars);
        if !known {
            running.laid = None;
            running.laid = Some(self.lay_out(device, &mut running, bound, scalars)?);
        }
        let wides = call(device, &mut running, bound, inputs)?;
        self.running = Some(running);
        Ok(wides)
    }

    fn start(&self, device: &Device) -> Result<Running, String> {
        let mut worker = device.worker().map_err(|error| chain(&error))?;
        let facts = worker
            .load(&self.cubin, &self.kernels)
            .map_err(|error| chain(&error))?;
        Ok(Running {
            worker,
            facts,
            laid: None,
        })
    }

    fn lay_out(
        &self,
        device: &Device,
        running: &mut Running,
        bound: &Bound,
        scalars: &[f64],
    ) -> Result<Laid, String> {
        let owner = &device.owner;
        let wide = widened(bound);
        let lookup = |name: &str| {
            let place = self.kernels.iter().position(|known| known == name)?;
            running.facts.get(place).cloned()
        };
        let plan = resolve(&self.plan, &wide, scalars, owner.facts(), &lookup)
            .map_err(|error| chain(&error))?
            .relocated(&self.kernels, &|buffer| buffer);
        let inputs = wide.inputs().count();
        let sizes = wide.tensors.iter().map(|tensor| tensor.extent_bytes);
        let sizes = sizes.chain(plan.workspaces.iter().map(|(_, bytes)| *bytes as usize));
        let buffers = sizes
            .enumerate()
            .map(|(index, bytes)| {
                let access = if index < inputs {
                    BufferAccess::Input
                } else {
                    BufferAccess::Output
                };
                owner.buffer(bytes, ALIGN, access)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| chain(&error))?;
        let shared: Vec<&Buffer> = buffers.iter().collect();
        running
            .worker
            .slot(0, &shared, &plan)
            .map_err(|error| chain(&error))?;
        Ok(Laid {
            axes: bound.axes.clone(),
            scalars: scalars.to_vec(),
            buffers,
        })
    }
}

/// Base pointers have at least this alignment on a device, in bytes.
const ALIGN: usize = 256;

fn call(
    device: &Device,
    running: &mut Running,
    bound: &Bound,
    inputs: &[Buffer],
) -> Result<Vec<Wide>, String> {
    let (owner, checks) = (&device.owner, &device.checks);
    let Some(laid) = &running.laid else {
        return Err("the reference has no buffers".to_owned());
    };
    for ((tensor, from), to) in bound.inputs().zip(inputs).zip(&laid.buffers) {
        let widened = checks.widen(owner, tensor.dtype, from, to, tensor.len());
        if !widened.map_err(|error| chain(&error))? {
            return Err(format!("input `{}` could not be widened", tensor.name));
        }
    }
    // Written tensors start as zeros, as those of a C reference do.
    for written in laid.buffers.iter().skip(inputs.len()) {
        owner.poison(written, 0).map_err(|error| chain(&error))?;
    }
    running
        .worker
        .call(owner, 0, Cache::AsIs, LIMIT)
        .map_err(|error| chain(&error))?;
    let mut written = laid.buffers.iter().skip(inputs.len());
    let mut copied = || {
        let from = written.next().ok_or("the reference has too few outputs")?;
        let to = owner
            .buffer(from.bytes(), ALIGN, BufferAccess::Input)
            .map_err(|error| chain(&error))?;
        owner.copy(&to, from).map_err(|error| chain(&error))?;
        Ok::<Buffer, String>(to)
    };
    let mut wides = Vec::new();
    for tensor in bound.outputs() {
        let want = copied()?;
        let scale = has_scale(tensor).then(&mut copied).transpose()?;
        if let Some(scale) = &scale {
            // A sign would turn the tolerance around.
            checks.magnitudes(owner, scale).map_err(|error| chain(&error))?;
        }
        wides.push(Wide { want, scale });
    }
    Ok(wides)
}

fn has_scale(tensor: &Tensor) -> bool {
    matches!(&tensor.role, Role::Output(rule) if rule.tolerance.has_scale)
}

/// The tensors and scalars of a workload as a reference sees them.
fn widened(bound: &Bound) -> Bound {
    let mut wide = bound.clone();
    let tensors = std::mem::take(&mut wide.tensors);
    for mut tensor in tensors {
        tensor.dtype = match crate::reference::output_kind(&tensor) {
            crate::reference::Kind::Real => DType::F64,
            crate::reference::Kind::Whole => DType::I64,
        };
        tensor.strides = ksmith_task::row_major(&tensor.shape);
        tensor.extent_bytes = tensor.len() * 8;
        tensor.align = ALIGN;
        tensor.inplace = None;
        let scale = has_scale(&tensor).then(|| {
            let mut scale = tensor.clone();
            scale.name = format!("{}_scale", scale.name);
            scale.dtype = DType::F64;
            scale
        });
        wide.tensors.push(tensor);
        wide.tensors.extend(scale);
    }
    for scalar in &mut wide.scalars {
        scalar.dtype = if scalar.dtype.is_float() {
            DType::F64
        } else {
            DType::I64
        };
    }
    wide
}

#[cfg(test)]
mod tests {
    use ksmith_box::Level;
    use ksmith_machine::{LocalHost, toolchain};
    use ksmith_task::{Backend, Task};

    use super::super::compiler::Compiler;
    use super::*;

    /// Needs a compiler and no GPU. The private toolchain is where `ksmith-search`'s test of structures fetches it.
    #[test]
    fn every_shipped_reference_compiles() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let home = std::env::var_os("HOME")
            .map(std::path::PathBuf::from)
            .unwrap_or_default();
        let own = root.join("target/tmp/cuda");
        let found = |place: &Path| {
            Some(super::super::template(place, "sm_90a".to_owned())).filter(|found| found.library.is_some())
        };
        let template = found(&home.join(".local/share/ksmith")).or_else(|| {
            if std::env::var_os("KSMITH_TEST_INSTALL").is_some() && found(&own).is_none() {
                toolchain::install(&LocalHost::new(), &own, &mut |_| ()).unwrap();
            }
            found(&own)
        });
        let Some(mut template) = template else {
            println!("skipped: 1 test, there is no CUDA toolchain; KSMITH_TEST_INSTALL=1 fetches it");
            return;
        };
        // The compiler's box shows the library's folder, not where a link on the way to it leads.
        template.library = template.library.and_then(|path| std::fs::canonicalize(path).ok());
        let compiler = Compiler::new(template, Level::Limits, false);
        let (mut compiled, mut wrong) = (0, Vec::new());
        for entry in std::fs::read_dir(root.join("tasks")).unwrap() {
            let task = Task::load(entry.unwrap().path()).unwrap();
            let Some(folder) = task.contract().reference.cuda.clone() else {
                continue;
            };
            let candidate = Candidate::load(task.dir().join(folder)).unwrap();
            for instance in task.instances_on(Backend::Cuda, &[]).unwrap() {
                match compiler.reference(&instance, &candidate, headers(&instance).unwrap()) {
                    Ok(_) => compiled += 1,
                    Err(error) => wrong.push(format!("{}: {error}", instance.id())),
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(compiled >= 30, "only {compiled}");
    }

    #[test]
    fn a_reference_sees_wide_dense_tensors_with_their_scales() {
        let task = ksmith_task::Task::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tasks/rope")).unwrap();
        let instance = task
            .instances()
            .into_iter()
            .find(|instance| instance.id() == "rope[T=bf16]")
            .unwrap();
        let axes = [("tokens", 3), ("heads", 2), ("dim", 4)];
        let axes = axes
            .iter()
            .map(|(name, size)| ((*name).to_owned(), *size))
            .collect();
        let wide = widened(&instance.bind(&axes).unwrap());
        let seen: Vec<(&str, DType, usize)> = wide
            .tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor.dtype, tensor.extent_bytes))
            .collect();
        let (real, whole) = (DType::F64, DType::I64);
        assert_eq!(
            seen,
            [
                ("x", real, 192),
                ("position", whole, 24),
                ("y", real, 192),
                ("y_scale", real, 192)
            ]
        );
        assert!(wide.scalars.iter().all(|scalar| scalar.dtype == real));
    }
}
