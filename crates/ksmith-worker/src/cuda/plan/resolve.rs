//! From expressions to numbers: the whole plan, step by step.

use ksmith_task::candidate::{Argument, CudaPlan, Kernel, Memset, Step};
use ksmith_task::expr::{Env, Expr};
use ksmith_task::{Bound, Role};

use super::occupancy::blocks_per_sm;
use super::scalar::{scalar, scalar_bytes};
use super::{Launch, Param, PlanError, ResolvedPlan, ResolvedStep, fail};
use crate::cuda::driver::{DeviceFacts, KernelFacts};

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
        ("max_shared", i64::from(device.shared_per_block)),
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

pub(super) fn integer(place: &str, expr: &Expr, env: &Env) -> Result<i64, PlanError> {
    expr.eval_int(env)
        .or_else(|error| fail(place, format!("`{}`: {error}", expr.text())))
}

pub(super) fn positive(place: &str, expr: &Expr, env: &Env, most: u64) -> Result<u64, PlanError> {
    let value = integer(place, expr, env)?;
    match u64::try_from(value) {
        Ok(size) if (1..=most).contains(&size) => Ok(size),
        _ => fail(
            place,
            format!("`{}` is {value}; it must be from 1 to {most}", expr.text()),
        ),
    }
}

pub(super) struct Resolver<'a> {
    plan: &'a CudaPlan,
    pub(super) bound: &'a Bound,
    scalars: &'a [f64],
    device: &'a DeviceFacts,
    lookup: &'a KernelLookup<'a>,
    env: Env,
    kernels: Vec<String>,
    workspaces: Vec<(String, u64)>,
}

impl Resolver<'_> {
    pub(super) fn buffer(&self, name: &str) -> Option<(usize, u64)> {
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
}
