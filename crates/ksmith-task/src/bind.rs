//! Binds an instance to sizes: every shape, stride, value and tolerance becomes a number.

use crate::contract::{AxisKind, AxisValues, Compare, Contract, Input, Output, ScalarSource, TypeName};
use crate::expr::{Env, Expr, ExprError, Value};
use crate::instance::{BindError, Bound, InputRule, OutputRule, Role, row_major};
use crate::instance::{ScalarArg, ScalarValue, Tensor, Tolerance};
use crate::nearest::nearest;
use crate::{DType, Fill, Instance};

/// Alignment that a base pointer has unless the contract says otherwise.
const CPU_ALIGN: usize = 64;
/// Larger storage cannot be mapped in one piece.
const MAX_BYTES: usize = 1 << 44;

impl Instance {
    /// Resolves every size, value and tolerance of one workload. Derived axes may be left out.
    pub fn bind(&self, axes: &AxisValues) -> Result<Bound, BindError> {
        let contract = self.task.contract();
        let env = self.env(axes)?;
        let axes = contract
            .axes
            .iter()
            .filter_map(|axis| match env.get(&axis.name) {
                Some(Value::Int(size)) => Some((axis.name.clone(), size)),
                _ => None,
            })
            .collect();
        let mut tensors = Vec::new();
        for input in &contract.inputs {
            tensors.push(self.input(input, &env)?);
        }
        for output in &contract.outputs {
            let tensor = self.output(output, contract, &tensors, &env)?;
            tensors.push(tensor);
        }
        let scalars = contract
            .scalars
            .iter()
            .map(|scalar| {
                let key = format!("scalars.{}", scalar.name);
                let value = match &scalar.source {
                    ScalarSource::Value(expr) => {
                        ScalarValue::Fixed(expr.eval(&env).map_err(|error| failed(&key, error))?)
                    }
                    ScalarSource::Fill(fill) => ScalarValue::Drawn(resolve_fill(fill, &env, &key)?),
                };
                Ok(ScalarArg {
                    name: scalar.name.clone(),
                    dtype: self.dtype(&scalar.dtype),
                    value,
                })
            })
            .collect::<Result<Vec<_>, BindError>>()?;
        let mut bound = Bound {
            axes,
            tensors,
            scalars,
            cost_bytes: 0.0,
            cost_flops: 0.0,
            env: Env::new(),
        };
        bound.cost_bytes = match &contract.cost.bytes {
            Some(expr) => number(expr, &env, "cost.bytes")?,
            // An output in place moves its memory twice: read and write.
            None => bound
                .tensors
                .iter()
                .map(|tensor| tensor.extent_bytes as f64)
                .sum(),
        };
        if let Some(expr) = &contract.cost.flops {
            bound.cost_flops = number(expr, &env, "cost.flops")?;
        }
        bound.env = env;
        Ok(bound)
    }

    /// The dtype that a type name stands for in this instance.
    pub fn dtype(&self, name: &TypeName) -> DType {
        match name {
            TypeName::Fixed(dtype) => *dtype,
            TypeName::Variable(variable) => self
                .types
                .iter()
                .find(|(known, _)| known == variable)
                // The contract was checked: every variable is assigned.
                .map_or(DType::F32, |(_, dtype)| *dtype),
        }
    }

    /// All names of expressions with their values; checks axes and constraints.
    pub(crate) fn env(&self, axes: &AxisValues) -> Result<Env, BindError> {
        let contract = self.task.contract();
        if let Some(name) = axes
            .keys()
            .find(|name| !contract.axes.iter().any(|axis| axis.name == **name))
        {
            let near = nearest(name, contract.axes.iter().map(|axis| axis.name.as_str()));
            return Err(BindError::Unknown {
                name: name.clone(),
                near: near.map(str::to_owned),
            });
        }
        let mut env: Env = self
            .types
            .iter()
            .map(|(name, dtype)| (name.clone(), *dtype))
            .collect();
        for axis in &contract.axes {
            let given = axes.get(&axis.name).copied();
            let size = match &axis.kind {
                AxisKind::Expr(expr) => {
                    let key = format!("axes.{}.expr", axis.name);
                    let size = expr.eval_int(&env).map_err(|error| failed(&key, error))?;
                    if let Some(given) = given.filter(|given| *given != size) {
                        return Err(BindError::Size {
                            axis: axis.name.clone(),
                            value: given,
                            expected: format!("{size} (`{expr}`)"),
                        });
                    }
                    if size < 0 {
                        return Err(BindError::Size {
                            axis: axis.name.clone(),
                            value: size,
                            expected: "a size >= 0".to_owned(),
                        });
                    }
                    size
                }
                kind @ (AxisKind::Range { .. } | AxisKind::Values(_)) => {
                    let size = given.ok_or_else(|| BindError::Missing(axis.name.clone()))?;
                    if let Some(expected) = kind.refuses(size) {
                        return Err(BindError::Size {
                            axis: axis.name.clone(),
                            value: size,
                            expected,
                        });
                    }
                    size
                }
            };
            env.set(axis.name.clone(), size);
        }
        for constraint in &contract.constraints {
            let holds = constraint
                .eval_bool(&env)
                .map_err(|error| failed("constraints", error))?;
            if !holds {
                return Err(BindError::Constraint(constraint.text().to_owned()));
            }
        }
        Ok(env)
    }

    fn input(&self, input: &Input, env: &Env) -> Result<Tensor, BindError> {
        let key = format!("inputs.{}", input.name);
        let rule = InputRule {
            fill: resolve_fill(&input.fill, env, &key)?,
            hidden: input
                .hidden
                .iter()
                .map(|fill| resolve_fill(fill, env, &key))
                .collect::<Result<Vec<_>, _>>()?,
            domain: input.domain,
            is_static: input.is_static,
        };
        let dtype = self.dtype(&input.dtype);
        let layout = Layout::of(&input.shape, input.strides.as_deref(), dtype, env, &key)?;
        Ok(layout.tensor(&input.name, dtype, input.align, Role::Input(rule), None))
    }

    fn output(
        &self,
        output: &Output,
        contract: &Contract,
        before: &[Tensor],
        env: &Env,
    ) -> Result<Tensor, BindError> {
        let key = format!("outputs.{}", output.name);
        let dtype = self.dtype(&output.dtype);
        let part = |map: &std::collections::BTreeMap<DType, Expr>, name: &str| match map.get(&dtype) {
            None => Ok(0.0),
            Some(expr) => {
                let key = format!("{key}.{name}");
                let value = number(expr, env, &key)?;
                if value < 0.0 {
                    let message = format!("the tolerance is {value}; it cannot be negative");
                    return Err(BindError::Invalid { key, message });
                }
                Ok(value)
            }
        };
        let position = |name: &Option<String>| {
            name.as_ref().and_then(|name| {
                contract
                    .inputs
                    .iter()
                    .map(|input| &input.name)
                    .chain(contract.outputs.iter().map(|output| &output.name))
                    .position(|known| known == name)
            })
        };
        let rule = OutputRule {
            compare: compare(&output.compare, env, &key)?,
            tolerance: Tolerance {
                atol: part(&output.atol, "atol")?,
                rtol: part(&output.rtol, "rtol")?,
                ctol: part(&output.ctol, "ctol")?,
                has_scale: output.scale,
            },
            overflow: output.overflow,
            state_of: position(&output.state_of),
            cut: output.cut.clone(),
            along: position(&output.along),
        };
        let layout = Layout::of(&output.shape, output.strides.as_deref(), dtype, env, &key)?;
        let inplace = position(&output.inplace);
        let mut tensor = layout.tensor(&output.name, dtype, output.align, Role::Output(rule), inplace);
        if let Some(shared) = inplace.and_then(|index| before.get(index)) {
            tensor.align = shared.align;
        }
        Ok(tensor)
    }
}

fn failed(key: &str, error: ExprError) -> BindError {
    BindError::Expression {
        key: key.to_owned(),
        error,
    }
}

fn number(expr: &Expr, env: &Env, key: &str) -> Result<f64, BindError> {
    expr.eval_float(env).map_err(|error| failed(key, error))
}

fn resolve_fill(fill: &Fill<Expr>, env: &Env, key: &str) -> Result<Fill, BindError> {
    fill.resolve(env)
        .map_err(|error| failed(&format!("{key}.fill"), error))
}

fn compare(compare: &Compare<Expr>, env: &Env, key: &str) -> Result<Compare, BindError> {
    let key = format!("{key}.compare");
    Ok(match compare {
        Compare::Elementwise => Compare::Elementwise,
        Compare::Exact => Compare::Exact,
        Compare::Rounded { tie } => Compare::Rounded {
            tie: number(tie, env, &key)?,
        },
        Compare::Index { of, axis, k, tie } => {
            let k = k.eval_int(env).map_err(|error| failed(&key, error))?;
            if k < 1 {
                return Err(BindError::Invalid {
                    key,
                    message: format!("k = {k}; expected 1 or more"),
                });
            }
            Compare::Index {
                of: of.clone(),
                axis: *axis,
                k: k as f64,
                tie: number(tie, env, &key)?,
            }
        }
        Compare::Checker { source } => Compare::Checker {
            source: source.clone(),
        },
    })
}

struct Layout {
    shape: Vec<usize>,
    strides: Vec<usize>,
    extent_bytes: usize,
}

impl Layout {
    fn of(
        shape: &[Expr],
        strides: Option<&[Expr]>,
        dtype: DType,
        env: &Env,
        key: &str,
    ) -> Result<Self, BindError> {
        let sizes = |exprs: &[Expr], what: &str, least: i64| {
            exprs
                .iter()
                .map(|expr| {
                    let key = format!("{key}.{what}");
                    let value = expr.eval_int(env).map_err(|error| failed(&key, error))?;
                    usize::try_from(value)
                        .ok()
                        .filter(|_| value >= least)
                        .ok_or_else(|| {
                            let message = format!("`{expr}` is {value}; expected {least} or more");
                            BindError::Invalid { key, message }
                        })
                })
                .collect::<Result<Vec<usize>, BindError>>()
        };
        let too_large = || BindError::TooLarge(key.rsplit('.').next().unwrap_or(key).to_owned());
        let shape = sizes(shape, "shape", 0)?;
        let elements = shape
            .iter()
            .try_fold(1usize, |product, size| product.checked_mul((*size).max(1)))
            .filter(|elements| *elements <= MAX_BYTES)
            .ok_or_else(too_large)?;
        let strides = match strides {
            None => row_major(&shape),
            Some(strides) => sizes(strides, "strides", 1)?,
        };
        let empty = shape.contains(&0);
        let last = if empty {
            None
        } else {
            let mut last = 0usize;
            for (size, stride) in shape.iter().zip(&strides) {
                let reach = (size - 1).checked_mul(*stride).ok_or_else(too_large)?;
                last = last.checked_add(reach).ok_or_else(too_large)?;
            }
            Some(last)
        };
        let extent = last.map_or(0, |last| last + 1);
        if !empty && extent < elements || overlaps(&shape, &strides) {
            let message = "the strides make elements share memory".to_owned();
            return Err(BindError::Invalid {
                key: format!("{key}.strides"),
                message,
            });
        }
        let extent_bytes = extent
            .checked_mul(dtype.bytes())
            .filter(|bytes| *bytes <= MAX_BYTES)
            .ok_or_else(too_large)?;
        Ok(Self {
            shape,
            strides,
            extent_bytes,
        })
    }

    fn tensor(
        self,
        name: &str,
        dtype: DType,
        align: Option<u32>,
        role: Role,
        inplace: Option<usize>,
    ) -> Tensor {
        Tensor {
            name: name.to_owned(),
            dtype,
            shape: self.shape,
            strides: self.strides,
            align: align.map_or(CPU_ALIGN, |align| align as usize),
            extent_bytes: self.extent_bytes,
            role,
            inplace,
        }
    }
}

/// Whether two elements may share memory: with dimensions ordered by stride, each must step over all smaller ones.
fn overlaps(shape: &[usize], strides: &[usize]) -> bool {
    let mut order: Vec<_> = shape.iter().zip(strides).filter(|(size, _)| **size > 1).collect();
    order.sort_by_key(|(_, stride)| **stride);
    let mut reach = 0usize;
    for (size, stride) in order {
        if *stride <= reach {
            return true;
        }
        reach = reach.saturating_add((size - 1).saturating_mul(*stride));
    }
    false
}
