//! `structure.toml`: what a structure is for, what may be varied, what is expected of it.

use std::collections::BTreeMap;

use ksmith_task::expr::Expr;
use ksmith_task::{Backend, DType};
use serde::Deserialize;

use crate::SearchError;

/// Name of the knob that counts threads.
pub(crate) const WORKERS: &str = "workers";

/// A parsed manifest.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Manifest {
    /// Name, unique in the library; also the name of the search direction.
    pub name: String,
    /// What its kernels run on.
    pub backend: Backend,
    /// Family of tasks.
    pub family: String,
    /// Names of tasks that it was written for. Others with the same signature are tried later.
    pub operators: Vec<String>,
    /// Strategies that it embodies, such as `simd`, `online`, `packing`.
    pub tags: Vec<String>,
    /// The hypothesis, one sentence.
    pub idea: String,
    /// What a profile should show if the hypothesis is right.
    pub signal: String,
    /// What could go wrong, one sentence.
    pub risk: String,
    /// Where the method comes from.
    pub source: String,
    /// Flags beside `-O3 -march=native` on a CPU; all flags on CUDA.
    pub flags: Vec<String>,
    /// Whether its outer loop may be split between threads; then the knob [`WORKERS`] is added where the policy has
    /// more than one.
    pub parallel: bool,
    /// Inputs in order.
    pub inputs: Vec<TensorPattern>,
    /// Outputs in order.
    pub outputs: Vec<TensorPattern>,
    /// Scalars in order.
    pub scalars: Vec<ScalarPattern>,
    /// Dtypes that each dtype variable may take.
    pub dtypes: BTreeMap<String, Vec<DType>>,
    /// Conditions on machine, dtypes and dev sizes.
    pub when: Vec<Expr>,
    /// What may be varied.
    pub knobs: Vec<Knob>,
    /// Conditions on knobs, machine and dtypes.
    pub constraints: Vec<Expr>,
    /// Predicted cycles of one call.
    pub cycles: Expr,
    /// Predicted cycles of one call of a plain C loop.
    pub plain_cycles: Expr,
}

/// A tensor that the structure expects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorPattern {
    /// Name in the template.
    pub name: String,
    /// A dtype or a dtype variable.
    pub dtype: String,
    /// Names of dimensions; the first may end in `..` and then stands for any number of leading dimensions.
    pub shape: Vec<String>,
    /// Whether it is the final state of a recurrence or shares the memory of an input; such outputs only match such.
    #[serde(default)]
    pub state: bool,
}

/// A scalar that the structure expects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalarPattern {
    /// Name in the template.
    pub name: String,
    /// A dtype or a dtype variable.
    pub dtype: String,
}

/// Something that may be varied.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Name in the template.
    pub name: String,
    /// Its values, the usual one first.
    pub values: Vec<i64>,
    /// What it does, one sentence.
    pub help: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    name: String,
    #[serde(default = "cpu")]
    backend: Backend,
    family: String,
    operators: Vec<String>,
    tags: Vec<String>,
    idea: String,
    signal: String,
    risk: String,
    source: String,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    parallel: bool,
    inputs: Vec<TensorPattern>,
    outputs: Vec<TensorPattern>,
    #[serde(default)]
    scalars: Vec<ScalarPattern>,
    #[serde(default)]
    dtypes: BTreeMap<String, Vec<DType>>,
    #[serde(default)]
    when: Vec<String>,
    #[serde(default, rename = "knob")]
    knobs: Vec<Knob>,
    #[serde(default)]
    constraints: Vec<String>,
    prior: Prior,
}

fn cpu() -> Backend {
    Backend::Cpu
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prior {
    cycles: String,
    plain: String,
}

impl Manifest {
    /// Parses a manifest; `folder` names it in errors.
    pub fn parse(folder: &str, text: &str) -> Result<Self, SearchError> {
        let fail = |message: String| SearchError::Manifest {
            structure: folder.to_owned(),
            message,
        };
        let document: Document = toml::from_str(text).map_err(|error| fail(error.to_string()))?;
        if document.schema != 1 {
            return Err(fail(format!("schema {} is unknown, expected 1", document.schema)));
        }
        if let Some(knob) = document.knobs.iter().find(|knob| knob.values.is_empty()) {
            return Err(fail(format!("knob `{}` has no values", knob.name)));
        }
        let expr = |text: &str| Expr::parse(text).map_err(|error| fail(format!("`{text}`: {error}")));
        let exprs = |texts: &[String]| texts.iter().map(|text| expr(text)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            when: exprs(&document.when)?,
            constraints: exprs(&document.constraints)?,
            cycles: expr(&document.prior.cycles)?,
            plain_cycles: expr(&document.prior.plain)?,
            name: document.name,
            backend: document.backend,
            family: document.family,
            operators: document.operators,
            tags: document.tags,
            idea: document.idea,
            signal: document.signal,
            risk: document.risk,
            source: document.source,
            flags: document.flags,
            parallel: document.parallel,
            inputs: document.inputs,
            outputs: document.outputs,
            scalars: document.scalars,
            dtypes: document.dtypes,
            knobs: document.knobs,
        })
    }
}
