//! Dtype variables and axes.

use std::collections::BTreeMap;

use super::context::{Context, Kind};
use crate::contract::{Axis, AxisKind, Backend, TypeVariable};
use crate::document::{At, AxisDocument, DTypes, Ordered};
use crate::{ContractError, DType};

/// Larger than any tensor's side, small enough that products of two fit in 64 bits.
const MAX_SIZE: i64 = 1 << 31;

impl Context<'_> {
    pub(super) fn types(
        &mut self,
        document: &Ordered<At<DTypes>>,
    ) -> Result<Vec<TypeVariable>, ContractError> {
        let mut variables = Vec::new();
        for (name, given) in &document.0 {
            self.claim(name, Kind::Type)?;
            let mut dtypes: Vec<DType> = Vec::new();
            let mut backends = BTreeMap::new();
            match &given.value {
                DTypes::All(list) => dtypes = self.dtype_list(list)?,
                DTypes::Each(table) => {
                    for (backend, list) in table {
                        let list = self.dtype_list(list)?;
                        dtypes.extend(
                            list.iter()
                                .filter(|dtype| !dtypes.contains(dtype))
                                .collect::<Vec<_>>(),
                        );
                        backends.insert(self.backend(backend)?, list);
                    }
                }
            }
            if dtypes.is_empty() {
                return Err(self
                    .error(&given.span, format!("`{}` has no dtype", name.value))
                    .expected("expected at least one dtype"));
            }
            self.types.insert(name.value.clone(), dtypes.clone());
            variables.push(TypeVariable {
                name: name.value.clone(),
                dtypes,
                backends,
            });
        }
        Ok(variables)
    }

    fn dtype_list(&self, given: &[At<DType>]) -> Result<Vec<DType>, ContractError> {
        let mut list: Vec<DType> = Vec::new();
        for dtype in given {
            if list.contains(&dtype.value) {
                return Err(self.error(&dtype.span, format!("`{}` is listed twice", dtype.value)));
            }
            list.push(dtype.value);
        }
        Ok(list)
    }

    fn backend(&self, name: &At<String>) -> Result<Backend, ContractError> {
        [Backend::Cpu, Backend::Cuda]
            .into_iter()
            .find(|backend| backend.name() == name.value)
            .ok_or_else(|| {
                self.error(&name.span, format!("`{}` is not a backend", name.value))
                    .expected("expected cpu or cuda")
            })
    }

    pub(super) fn axes(
        &mut self,
        document: &At<Ordered<At<AxisDocument>>>,
    ) -> Result<Vec<Axis>, ContractError> {
        for (name, _) in &document.0 {
            self.claim(name, Kind::Axis)?;
        }
        if document.0.is_empty() {
            return Err(self
                .error(&document.span, "there are no axes")
                .expected("expected at least one axis"));
        }
        let mut axes: Vec<Axis> = Vec::new();
        for (name, axis) in &document.0 {
            let kind = self.axis(name, axis)?;
            if let AxisKind::Expr(expr) = &kind {
                // Only earlier axes: no cycles, and one pass resolves all.
                let later = expr.name_spans().into_iter().find(|(used, _)| {
                    self.names.get(*used) == Some(&Kind::Axis)
                        && !axes.iter().any(|known| known.name == *used)
                });
                if let (Some((used, _)), Some(text)) = (later, &axis.expr) {
                    return Err(self
                        .error(
                            &text.span,
                            format!("axis `{}` uses `{used}`, which comes later", name.value),
                        )
                        .expected("expected earlier axes only")
                        .help(format!("put `{used}` before `{}`", name.value)));
                }
            }
            axes.push(Axis {
                name: name.value.clone(),
                kind,
            });
        }
        Ok(axes)
    }

    fn axis(&self, name: &At<String>, axis: &At<AxisDocument>) -> Result<AxisKind, ContractError> {
        let range = axis.min.is_some() || axis.max.is_some() || axis.multiple_of.is_some();
        let forms =
            usize::from(range) + usize::from(axis.values.is_some()) + usize::from(axis.expr.is_some());
        if forms != 1 {
            let what = if forms == 0 {
                "has no sizes"
            } else {
                "mixes range, values and expression"
            };
            return Err(self
                .error(&axis.span, format!("axis `{}` {what}", name.value))
                .expected("expected `{ min, max, multiple_of }`, `{ values }` or `{ expr }`"));
        }
        if let Some(text) = &axis.expr {
            return Ok(AxisKind::Expr(self.condition(text)?));
        }
        if let Some(values) = &axis.values {
            return self.values(name, values);
        }
        let Some(max) = &axis.max else {
            return Err(self
                .error(&axis.span, format!("axis `{}` has no greatest size", name.value))
                .expected("expected `max`"));
        };
        let min = axis.min.as_ref().map_or(1, |min| min.value);
        let multiple_of = axis.multiple_of.as_ref().map_or(1, |multiple| multiple.value);
        for (value, least) in [
            (axis.min.as_ref(), 0),
            (Some(max), 1),
            (axis.multiple_of.as_ref(), 1),
        ] {
            if let Some(value) = value.filter(|value| value.value < least || value.value > MAX_SIZE) {
                return Err(self
                    .error(&value.span, format!("{} is not a size", value.value))
                    .expected(format!("expected {least} to {MAX_SIZE}")));
            }
        }
        if min > max.value {
            return Err(self
                .error(
                    &max.span,
                    format!("axis `{}`: max {} is below min {min}", name.value, max.value),
                )
                .expected(format!("expected at least {min}")));
        }
        if max.value / multiple_of * multiple_of < min {
            return Err(self
                .error(
                    &axis.span,
                    format!(
                        "axis `{}`: no multiple of {multiple_of} in {min}..{}",
                        name.value, max.value
                    ),
                )
                .expected("no size fits"));
        }
        Ok(AxisKind::Range {
            min,
            max: max.value,
            multiple_of,
        })
    }

    fn values(&self, name: &At<String>, values: &At<Vec<At<i64>>>) -> Result<AxisKind, ContractError> {
        if let Some(value) = values.iter().find(|value| !(0..=MAX_SIZE).contains(&value.value)) {
            return Err(self
                .error(&value.span, format!("{} is not a size", value.value))
                .expected(format!("expected 0 to {MAX_SIZE}")));
        }
        let mut sizes: Vec<i64> = values.iter().map(|value| value.value).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() {
            return Err(self
                .error(&values.span, format!("axis `{}` has no sizes", name.value))
                .expected("expected at least one size"));
        }
        Ok(AxisKind::Values(sizes))
    }
}
