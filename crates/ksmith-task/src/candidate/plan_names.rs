//! The names that a launch plan uses: each must be one that the task or the plan itself gives.

use std::collections::BTreeSet;

use super::cuda::{Argument, CudaPlan, Step, TensorMap};
use super::policy::PolicyError;
use crate::Instance;
use crate::expr::Expr;
use crate::nearest::nearest;

/// Variables that every expression of a launch plan may use, beside axes and dtype variables.
pub const DEVICE_NAMES: [&str; 3] = ["sm_count", "blocks_per_sm", "max_shared"];

type Set<'a> = BTreeSet<&'a str>;

/// What may be named, by kind.
struct Names<'a> {
    /// Inputs, and outputs with memory of their own.
    tensors: Set<'a>,
    /// Tensors that are written.
    outputs: Set<'a>,
    workspaces: Set<'a>,
    maps: Set<'a>,
    /// Axes and scalars.
    numbers: Set<'a>,
    /// What an expression may use.
    in_expressions: Set<'a>,
}

/// Checks every name and expression of a plan.
pub(super) fn check_plan(plan: &CudaPlan, instance: &Instance) -> Result<(), PolicyError> {
    let names = Names::of(plan, instance);
    let mut own = names.workspaces.iter().chain(&names.maps);
    if let Some(taken) = own.find(|name| names.tensors.contains(**name) || names.numbers.contains(**name)) {
        return error("workspace", format!("the name `{taken}` is one of the task's"));
    }
    for workspace in &plan.workspaces {
        names.check_expr("workspace.bytes", &workspace.bytes)?;
    }
    for map in &plan.tensormaps {
        names.check_map(map)?;
    }
    let has_static = instance
        .task()
        .contract()
        .inputs
        .iter()
        .any(|input| input.is_static);
    if !plan.setup.is_empty() && !has_static {
        return error("setup", "the task has no static input".to_owned());
    }
    for when in plan.variants.iter().filter_map(|variant| variant.when.as_ref()) {
        names.check_expr("variant.when", when)?;
    }
    plan.steps().try_for_each(|step| names.check_step(step))
}

impl<'a> Names<'a> {
    fn of(plan: &'a CudaPlan, instance: &'a Instance) -> Self {
        let contract = instance.task().contract();
        let axes = || contract.axes.iter().map(|axis| axis.name.as_str());
        let own = contract.outputs.iter().filter(|output| output.inplace.is_none());
        Self {
            tensors: (contract.inputs.iter().map(|input| input.name.as_str()))
                .chain(own.map(|output| output.name.as_str()))
                .collect(),
            outputs: (contract.outputs.iter())
                .map(|output| output.inplace.as_deref().unwrap_or(&output.name))
                .collect(),
            workspaces: (plan.workspaces.iter())
                .map(|workspace| workspace.name.as_str())
                .collect(),
            maps: plan.tensormaps.iter().map(|map| map.name.as_str()).collect(),
            numbers: axes()
                .chain(contract.scalars.iter().map(|scalar| scalar.name.as_str()))
                .collect(),
            in_expressions: axes()
                .chain(contract.types.iter().map(|variable| variable.name.as_str()))
                .chain(DEVICE_NAMES)
                .collect(),
        }
    }

    fn check_expr(&self, key: &str, expr: &Expr) -> Result<(), PolicyError> {
        let mut used = expr.names().into_iter();
        match used.find(|name| !self.in_expressions.contains(name)) {
            Some(name) => error(key, unknown(name, &[&self.in_expressions])),
            None => Ok(()),
        }
    }

    fn check_map(&self, map: &TensorMap) -> Result<(), PolicyError> {
        let of_workspace = self.workspaces.contains(map.tensor.as_str());
        if !self.tensors.contains(map.tensor.as_str()) && !of_workspace {
            let known = [&self.tensors, &self.workspaces];
            return error("tensormap.tensor", unknown(&map.tensor, &known));
        }
        if of_workspace && map.dtype.is_none() {
            return error(
                "tensormap.dtype",
                format!("a map of the workspace `{}` needs a dtype", map.tensor),
            );
        }
        let mut parts = [&map.dims, &map.strides, &map.box_dims, &map.element_strides]
            .into_iter()
            .flatten();
        parts.try_for_each(|expr| self.check_expr("tensormap", expr))
    }

    fn check_step(&self, step: &Step) -> Result<(), PolicyError> {
        match step {
            Step::Memset(memset) => {
                let target = memset.target.as_str();
                let known = [&self.workspaces, &self.outputs];
                if !known.iter().any(|set| set.contains(target)) {
                    return error("step.memset", unknown(target, &known));
                }
                let mut bytes = memset.bytes.iter();
                bytes.try_for_each(|bytes| self.check_expr("step.bytes", bytes))
            }
            Step::Kernel(kernel) => {
                let sizes = [&kernel.grid, &kernel.block, &kernel.cluster]
                    .into_iter()
                    .flatten();
                for expr in sizes.chain(&kernel.shared) {
                    self.check_expr("step", expr)?;
                }
                for argument in &kernel.args {
                    match argument {
                        Argument::Value(_, expr) => self.check_expr("step.args", expr)?,
                        Argument::Name(name) => {
                            let known = [&self.tensors, &self.workspaces, &self.maps, &self.numbers];
                            if !known.iter().any(|set| set.contains(name.as_str())) {
                                return error("step.args", unknown(name, &known));
                            }
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

fn unknown(name: &str, known: &[&Set<'_>]) -> String {
    match nearest(name, known.iter().flat_map(|set| set.iter().copied())) {
        Some(near) => format!("there is no `{name}`; did you mean `{near}`?"),
        None => format!("there is no `{name}`"),
    }
}

fn error(key: &str, message: String) -> Result<(), PolicyError> {
    Err(PolicyError::Plan {
        key: key.to_owned(),
        message,
    })
}
