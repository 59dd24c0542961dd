//! Resolves a declarative launch plan for one workload on one device.
//!
//! Everything that can be wrong with a plan is found here, with numbers, before anything runs: unknown names, wrong
//! sizes and counts of arguments, empty grids, blocks above 1024 threads, too much shared memory. Pure functions; no
//! device is needed.

use ksmith_task::candidate::{
    Argument, CudaPlan, DataType, FillMode, Kernel, Memset, Step, Swizzle, TensorMap,
};
use ksmith_task::expr::{Env, Expr};
use ksmith_task::{Bound, DType, Role};
use serde::{Deserialize, Serialize};

use super::driver::{DeviceFacts, KernelFacts};

/// Why a plan cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct PlanError {
    /// Which part: `workspace partial`, `step 2 (attend<128, true>), grid[0]`, …
    pub place: String,
    /// What is wrong, with the numbers.
    pub message: String,
}

fn fail<T>(place: impl Into<String>, message: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError {
        place: place.into(),
        message: message.into(),
    })
}

/// A tensor map without the address of its buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMapParam {
    /// Index of the buffer.
    pub buffer: usize,
    /// Element type.
    pub element: DType,
    /// Sizes in elements, innermost first.
    pub dims: Vec<u64>,
    /// Strides in bytes, without the innermost.
    pub strides: Vec<u64>,
    /// Box in elements.
    pub box_dims: Vec<u32>,
    /// Element strides.
    pub element_strides: Vec<u32>,
    /// 0, 32, 64 or 128.
    pub swizzle_bytes: u32,
    /// Whether elements out of bounds read as NaN instead of 0.
    pub nan_fill: bool,
}

/// One argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// The address of a buffer.
    Buffer(usize),
    /// A tensor map over a buffer.
    Map(TensorMapParam),
    /// The bytes of a scalar.
    Bytes(Vec<u8>),
}

impl Param {
    /// Size in bytes as the kernel sees it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Buffer(_) => 8,
            Self::Map(_) => 128,
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Geometry of one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Index of the kernel in [`ResolvedPlan::kernels`].
    pub kernel: usize,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// Whether all blocks run at once.
    pub cooperative: bool,
    /// Whether the launch may overlap the end of the step before.
    pub pdl: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedStep {
    /// Fills the first bytes of a buffer.
    Fill {
        /// Index of the buffer.
        buffer: usize,
        /// The byte.
        value: u8,
        /// How many.
        bytes: u64,
    },
    /// Launches a kernel.
    Launch {
        /// Geometry.
        launch: Launch,
        /// Arguments.
        params: Vec<Param>,
    },
}

/// A plan with every number known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedPlan {
    /// Name expressions of the kernels that are launched.
    pub kernels: Vec<String>,
    /// Name and size in bytes of each workspace; workspaces stand behind the task's tensors in buffer order.
    pub workspaces: Vec<(String, u64)>,
    /// Steps run once for static inputs.
    pub setup: Vec<ResolvedStep>,
    /// Steps of a call.
    pub steps: Vec<ResolvedStep>,
}

/// What the plan's expressions may ask about a kernel: its facts, by name expression.
pub type KernelLookup<'a> = dyn Fn(&str) -> Option<KernelFacts> + 'a;

/// Resolves `plan` for one workload. Without kernel facts (`lookup` returns `None`) the checks that need the compiled
/// code are left out, and `blocks_per_sm` is 1. `scalars` holds the values of the case, in the task's order.
pub fn resolve(
    plan: &CudaPlan,
    bound: &Bound,
    scalars: &[f64],
    device: &DeviceFacts,
    lookup: &KernelLookup<'_>,
) -> Result<ResolvedPlan, PlanError> {
    let mut env = bound.env.clone();
    for (name, value) in [
        ("sm_count", i64::from(device.sm_count)),
        ("l2_bytes", i64::from(device.l2_bytes)),
        ("shared_per_block", i64::from(device.shared_per_block)),
    ] {
        env.set(name, value);
    }
    let mut resolver = Resolver {
        plan,
        bound,
        scalars,
        device,
        lookup,
        env,
        kernels: Vec::new(),
        workspaces: Vec::new(),
    };
    for workspace in &plan.workspaces {
        let place = format!("workspace `{}`", workspace.name);
        let bytes = positive(&place, &workspace.bytes, &resolver.env, 1 << 40)?;
        resolver.workspaces.push((workspace.name.clone(), bytes));
    }
    let setup = resolver.steps("setup", &plan.setup)?;
    let mut chosen = None;
    for (index, variant) in plan.variants.iter().enumerate() {
        let holds = match &variant.when {
            None => true,
            Some(when) => when
                .eval_bool(&resolver.env)
                .or_else(|error| fail(format!("variant {}, when", index + 1), error.to_string()))?,
        };
        if holds {
            chosen = Some((index, variant));
            break;
        }
    }
    let Some((index, variant)) = chosen else {
        return fail(
            "variants",
            "no condition holds for this workload and the last variant has one",
        );
    };
    let steps = resolver.steps(&format!("variant {}", index + 1), &variant.steps)?;
    if steps.is_empty() {
        return fail(format!("variant {}", index + 1), "has no steps");
    }
    Ok(ResolvedPlan {
        kernels: resolver.kernels,
        workspaces: resolver.workspaces,
        setup,
        steps,
    })
}

fn integer(place: &str, expr: &Expr, env: &Env) -> Result<i64, PlanError> {
    expr.eval_int(env)
        .or_else(|error| fail(place, format!("`{}`: {error}", expr.text())))
}

fn positive(place: &str, expr: &Expr, env: &Env, most: u64) -> Result<u64, PlanError> {
    let value = integer(place, expr, env)?;
    match u64::try_from(value) {
        Ok(size) if (1..=most).contains(&size) => Ok(size),
        _ => fail(
            place,
            format!("`{}` is {value}; it must be from 1 to {most}", expr.text()),
        ),
    }
}

struct Resolver<'a> {
    plan: &'a CudaPlan,
    bound: &'a Bound,
    scalars: &'a [f64],
    device: &'a DeviceFacts,
    lookup: &'a KernelLookup<'a>,
    env: Env,
    kernels: Vec<String>,
    workspaces: Vec<(String, u64)>,
}

impl Resolver<'_> {
    fn buffer(&self, name: &str) -> Option<(usize, u64)> {
        if let Some(index) = self.bound.tensors.iter().position(|tensor| tensor.name == name) {
            // An in-place output is the memory of its input.
            let index = self.bound.tensors[index].inplace.unwrap_or(index);
            return Some((index, self.bound.tensors[index].extent_bytes as u64));
        }
        let index = self
            .workspaces
            .iter()
            .position(|(workspace, _)| workspace == name)?;
        Some((self.bound.tensors.len() + index, self.workspaces[index].1))
    }

    fn steps(&mut self, place: &str, steps: &[Step]) -> Result<Vec<ResolvedStep>, PlanError> {
        let mut resolved = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let place = format!("{place}, step {}", index + 1);
            resolved.push(match step {
                Step::Memset(memset) => self.memset(&place, memset)?,
                Step::Kernel(kernel) => {
                    self.kernel(&format!("{place} ({})", kernel.name), kernel, index == 0)?
                }
            });
        }
        Ok(resolved)
    }

    fn memset(&self, place: &str, memset: &Memset) -> Result<ResolvedStep, PlanError> {
        let Some((buffer, size)) = self.buffer(&memset.target) else {
            return fail(
                place,
                format!(
                    "memset of `{}`: no output or workspace has this name",
                    memset.target
                ),
            );
        };
        let input = self
            .bound
            .tensors
            .get(buffer)
            .is_some_and(|tensor| matches!(tensor.role, Role::Input(_)))
            && !self
                .bound
                .tensors
                .iter()
                .any(|tensor| tensor.inplace == Some(buffer));
        if input {
            return fail(
                place,
                format!("memset of `{}`: inputs are read-only", memset.target),
            );
        }
        let bytes = match &memset.bytes {
            None => size,
            Some(expr) => positive(&format!("{place}, bytes"), expr, &self.env, size)?,
        };
        Ok(ResolvedStep::Fill {
            buffer,
            value: memset.value,
            bytes,
        })
    }

    fn sizes(&self, place: &str, exprs: &[Expr], env: &Env, most: [u64; 3]) -> Result<[u32; 3], PlanError> {
        let mut sizes = [1u32; 3];
        if exprs.is_empty() || exprs.len() > 3 {
            return fail(
                place,
                format!("has {} sizes; one to three are needed", exprs.len()),
            );
        }
        for (index, expr) in exprs.iter().enumerate() {
            sizes[index] = positive(&format!("{place}[{index}]"), expr, env, most[index])? as u32;
        }
        Ok(sizes)
    }

    fn kernel(&mut self, place: &str, kernel: &Kernel, first: bool) -> Result<ResolvedStep, PlanError> {
        let facts = (self.lookup)(&kernel.name);
        let block = self.sizes(
            &format!("{place}, block"),
            &kernel.block,
            &self.env,
            [1024, 1024, 64],
        )?;
        let threads: u32 = block.iter().product();
        let most = facts
            .as_ref()
            .map_or(1024, |facts| facts.max_threads.clamp(1, 1024) as u32);
        if threads > most {
            return fail(
                format!("{place}, block"),
                format!(
                    "{} x {} x {} is {threads} threads; this kernel takes at most {most}",
                    block[0], block[1], block[2]
                ),
            );
        }
        let shared = match &kernel.shared {
            None => 0,
            Some(expr) => {
                let value = integer(&format!("{place}, shared"), expr, &self.env)?;
                let fixed = facts.as_ref().map_or(0, |facts| i64::from(facts.static_shared));
                if value < 0 || value + fixed > i64::from(self.device.shared_per_block) {
                    return fail(
                        format!("{place}, shared"),
                        format!(
                            "`{}` is {value} bytes, with {fixed} static; a block has at most {}",
                            expr.text(),
                            self.device.shared_per_block
                        ),
                    );
                }
                value as u32
            }
        };
        let mut env = self.env.clone();
        let resident = facts
            .as_ref()
            .map_or(1, |facts| blocks_per_sm(self.device, facts, threads, shared));
        env.set("blocks_per_sm", i64::from(resident));
        let grid = self.sizes(
            &format!("{place}, grid"),
            &kernel.grid,
            &env,
            [2_147_483_647, 65_535, 65_535],
        )?;
        let cluster = if kernel.cluster.is_empty() {
            None
        } else {
            let cluster = self.sizes(&format!("{place}, cluster"), &kernel.cluster, &env, [16, 16, 16])?;
            let blocks: u32 = cluster.iter().product();
            if blocks > 16 {
                return fail(
                    format!("{place}, cluster"),
                    format!("{blocks} blocks; a cluster has at most 16"),
                );
            }
            if let Some(axis) = (0..3).find(|&axis| grid[axis] % cluster[axis] != 0) {
                return fail(
                    format!("{place}, grid[{axis}]"),
                    format!("{} is no multiple of the cluster's {}", grid[axis], cluster[axis]),
                );
            }
            Some(cluster)
        };
        if kernel.pdl && first {
            return fail(place, "pdl needs a step before it in the same plan");
        }
        if kernel.cooperative {
            let blocks: u64 = grid.iter().map(|&size| u64::from(size)).product();
            let room = u64::from(resident) * u64::from(self.device.sm_count.unsigned_abs());
            if facts.is_some() && blocks > room {
                return fail(
                    format!("{place}, grid"),
                    format!("{blocks} blocks; a cooperative launch has room for {room}"),
                );
            }
        }
        let params = self.params(place, kernel, &env, facts.as_ref())?;
        let index = self
            .kernels
            .iter()
            .position(|name| *name == kernel.name)
            .unwrap_or_else(|| {
                self.kernels.push(kernel.name.clone());
                self.kernels.len() - 1
            });
        let launch = Launch {
            kernel: index,
            grid,
            block,
            cluster,
            shared,
            cooperative: kernel.cooperative,
            pdl: kernel.pdl,
        };
        Ok(ResolvedStep::Launch { launch, params })
    }

    fn params(
        &self,
        place: &str,
        kernel: &Kernel,
        env: &Env,
        facts: Option<&KernelFacts>,
    ) -> Result<Vec<Param>, PlanError> {
        let mut params = Vec::with_capacity(kernel.args.len());
        for (index, argument) in kernel.args.iter().enumerate() {
            let place = format!("{place}, argument {}", index + 1);
            params.push(match argument {
                Argument::Name(name) => self.named(&place, name, env)?,
                Argument::Value(data, expr) => Param::Bytes(scalar(&place, *data, expr, env)?),
            });
        }
        if let Some(facts) = facts {
            if facts.params.len() != params.len() {
                return fail(
                    place,
                    format!(
                        "passes {} arguments; the kernel has {} parameters",
                        params.len(),
                        facts.params.len()
                    ),
                );
            }
            for (index, (param, size)) in params.iter().zip(&facts.params).enumerate() {
                if param.bytes() != *size {
                    return fail(
                        format!("{place}, argument {}", index + 1),
                        format!("has {} bytes; the kernel's parameter has {size}", param.bytes()),
                    );
                }
            }
        }
        Ok(params)
    }

    fn named(&self, place: &str, name: &str, env: &Env) -> Result<Param, PlanError> {
        if let Some((buffer, _)) = self.buffer(name) {
            return Ok(Param::Buffer(buffer));
        }
        if let Some(map) = self.plan.tensormaps.iter().find(|map| map.name == name) {
            return Ok(Param::Map(self.map(map, env)?));
        }
        if let Some(index) = self.bound.scalars.iter().position(|scalar| scalar.name == name) {
            let value = self.scalars.get(index).copied().unwrap_or(0.0);
            return Ok(Param::Bytes(scalar_bytes(
                place,
                self.bound.scalars[index].dtype,
                value,
            )?));
        }
        if let Some((_, value)) = self.bound.axes.iter().find(|(axis, _)| axis == name) {
            return Ok(Param::Bytes(value.to_le_bytes().to_vec()));
        }
        let known: Vec<&str> = (self.bound.tensors.iter().map(|tensor| tensor.name.as_str()))
            .chain(self.workspaces.iter().map(|(name, _)| name.as_str()))
            .chain(self.plan.tensormaps.iter().map(|map| map.name.as_str()))
            .chain(self.bound.scalars.iter().map(|scalar| scalar.name.as_str()))
            .chain(self.bound.axes.iter().map(|(name, _)| name.as_str()))
            .collect();
        fail(
            place,
            format!("`{name}` is unknown; there are {}", known.join(", ")),
        )
    }

    fn map(&self, map: &TensorMap, env: &Env) -> Result<TensorMapParam, PlanError> {
        let place = format!("tensormap `{}`", map.name);
        let Some((buffer, size)) = self.buffer(&map.tensor) else {
            return fail(&place, format!("`{}` is no tensor or workspace", map.tensor));
        };
        let Some(element) = map
            .dtype
            .or_else(|| self.bound.tensors.get(buffer).map(|tensor| tensor.dtype))
        else {
            return fail(&place, "a map over a workspace needs a dtype");
        };
        let rank = map.dims.len();
        if !(1..=5).contains(&rank) || map.box_dims.len() != rank || map.strides.len() + 1 != rank {
            return fail(
                &place,
                format!(
                    "{rank} dims, {} strides, {} box sizes; 1 to 5 dims, one stride less and as many box sizes are needed",
                    map.strides.len(),
                    map.box_dims.len()
                ),
            );
        }
        let list = |exprs: &[Expr], what: &str, most: u64| -> Result<Vec<u64>, PlanError> {
            exprs
                .iter()
                .enumerate()
                .map(|(index, expr)| positive(&format!("{place}, {what}[{index}]"), expr, env, most))
                .collect()
        };
        let dims = list(&map.dims, "dims", 1 << 32)?;
        let strides = list(&map.strides, "strides", 1 << 40)?;
        if let Some(stride) = strides.iter().find(|stride| *stride % 16 != 0) {
            return fail(&place, format!("a stride of {stride} bytes is no multiple of 16"));
        }
        let last: u64 = (1..rank)
            .map(|axis| (dims[axis] - 1) * strides[axis - 1])
            .sum::<u64>()
            + dims[0] * element.bytes() as u64;
        if last > size {
            return fail(
                &place,
                format!("reaches {last} bytes; `{}` has {size}", map.tensor),
            );
        }
        let narrow = |values: Vec<u64>| values.into_iter().map(|value| value as u32).collect::<Vec<u32>>();
        let box_dims = narrow(list(&map.box_dims, "box", 256)?);
        let element_strides = if map.element_strides.is_empty() {
            vec![1; rank]
        } else {
            narrow(list(&map.element_strides, "element_strides", 8)?)
        };
        let swizzle_bytes = match map.swizzle {
            Swizzle::None => 0,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        };
        let inner = u64::from(box_dims[0]) * element.bytes() as u64;
        if swizzle_bytes > 0 && inner > u64::from(swizzle_bytes) {
            return fail(
                &place,
                format!("the inner box has {inner} bytes; swizzle {swizzle_bytes}B takes at most that many"),
            );
        }
        Ok(TensorMapParam {
            buffer,
            element,
            dims,
            strides,
            box_dims,
            element_strides,
            swizzle_bytes,
            nan_fill: matches!(map.fill, FillMode::Nan),
        })
    }
}

fn scalar(place: &str, data: DataType, expr: &Expr, env: &Env) -> Result<Vec<u8>, PlanError> {
    let range = |what: &str, value: i64| PlanError {
        place: place.to_owned(),
        message: format!("`{}` is {value}, which no {what} holds", expr.text()),
    };
    let float = || {
        expr.eval_float(env)
            .or_else(|error| fail(place, format!("`{}`: {error}", expr.text())))
    };
    Ok(match data {
        DataType::I64 => integer(place, expr, env)?.to_le_bytes().to_vec(),
        DataType::U64 => {
            let value = integer(place, expr, env)?;
            u64::try_from(value)
                .map_err(|_| range("u64", value))?
                .to_le_bytes()
                .to_vec()
        }
        DataType::I32 => {
            let value = integer(place, expr, env)?;
            i32::try_from(value)
                .map_err(|_| range("i32", value))?
                .to_le_bytes()
                .to_vec()
        }
        DataType::U32 => {
            let value = integer(place, expr, env)?;
            u32::try_from(value)
                .map_err(|_| range("u32", value))?
                .to_le_bytes()
                .to_vec()
        }
        DataType::F32 => (float()? as f32).to_le_bytes().to_vec(),
        DataType::F64 => float()?.to_le_bytes().to_vec(),
    })
}

/// The bytes of a scalar argument in its own type.
fn scalar_bytes(place: &str, dtype: DType, value: f64) -> Result<Vec<u8>, PlanError> {
    Ok(match dtype {
        DType::F64 => value.to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::I64 => (value as i64).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        DType::I16 => (value as i16).to_le_bytes().to_vec(),
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::U8 | DType::Bool => vec![value as u8],
        DType::F16 | DType::Bf16 | DType::F8e4m3 | DType::F8e5m2 => {
            return fail(
                place,
                format!("a scalar of type {dtype} cannot be passed to a launch; declare it f32"),
            );
        }
    })
}

/// Blocks that one multiprocessor holds at once.
///
/// Registers are given to a warp in units of 256, shared memory to a block in units of 128 bytes with 1 KiB reserved
/// (CUDA C++ Best Practices Guide, occupancy; compute capability 8.0 and later).
pub(crate) fn blocks_per_sm(device: &DeviceFacts, facts: &KernelFacts, threads: u32, shared: u32) -> u32 {
    let warps = threads.div_ceil(32).max(1);
    let by_threads = device.threads_per_sm.unsigned_abs() / (warps * 32);
    let registers = (facts.registers.unsigned_abs().max(1) * 32).next_multiple_of(256) * warps;
    let by_registers = device.registers_per_sm.unsigned_abs() / registers;
    let memory = (facts.static_shared.unsigned_abs() + shared + 1024).next_multiple_of(128);
    let by_memory = device.shared_per_sm.unsigned_abs() / memory;
    by_threads.min(by_registers).min(by_memory).clamp(1, 32)
}
