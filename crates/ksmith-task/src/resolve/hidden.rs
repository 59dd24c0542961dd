//! Hidden cases and dev workloads.

use std::collections::BTreeMap;

use super::context::{Context, Kind};
use crate::contract::{Axis, AxisKind, AxisValues, Distribution, Hidden, Input, Probe, Trace, Workload};
use crate::document::{At, HiddenDocument, Ordered, TextOr, WorkloadDocument};
use crate::expr::Expr;
use crate::nearest::nearest;
use crate::{ContractError, Fill};

impl Context<'_> {
    pub(super) fn hidden(
        &self,
        document: &HiddenDocument,
        inputs: &[Input],
        axes: &[Axis],
    ) -> Result<Hidden, ContractError> {
        let count = |value: &Option<At<u32>>, default: u32, most: u32| match value {
            None => Ok(default),
            Some(value) if value.value <= most => Ok(value.value),
            Some(value) => Err(self
                .error(&value.span, format!("{} is too many", value.value))
                .expected(format!("expected at most {most}"))),
        };
        let shapes = count(&document.shapes, 6, 256)?;
        let distributions = match &document.distributions {
            Some(list) => list
                .iter()
                .map(|entry| self.distribution(entry, inputs))
                .collect::<Result<Vec<_>, _>>()?,
            None => derived(inputs),
        };
        // Shapes and distributions are paired: each must occur at least once.
        let least = shapes
            .max(u32::try_from(distributions.len()).unwrap_or(u32::MAX))
            .max(1);
        let cases = count(&document.cases, least.max(8), 256)?;
        if let Some(given) = document.cases.as_ref().filter(|_| cases < least) {
            return Err(self
                .error(
                    &given.span,
                    format!("{cases} hidden cases cannot hold every shape and distribution"),
                )
                .expected(format!("expected at least {least}"))
                .help(format!(
                    "there are {shapes} shapes and {} distributions",
                    distributions.len()
                )));
        }
        let probes = document.probes.as_deref().unwrap_or_default();
        let probes = probes
            .iter()
            .map(|probe| {
                Ok(Probe {
                    name: probe.name.value.clone(),
                    fills: self.fills(&probe.fill, inputs)?,
                    axes: self.partial_axes(&probe.axes, axes)?,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let traces = document.traces.as_deref().unwrap_or_default();
        let traces = traces
            .iter()
            .map(|trace| {
                let mut map = BTreeMap::new();
                for (name, recorded) in &trace.map.0 {
                    self.known_input(name, inputs)?;
                    map.insert(name.value.clone(), recorded.value.clone());
                }
                Ok(Trace {
                    file: self.source(&trace.file, &["safetensors"])?,
                    map,
                    axes: self.all_axes(&trace.axes, axes)?,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let max_flops = match &document.max_flops {
            Some(value) => self.within(value, 0.0, 1e18, "max_flops")?,
            None => 2e9,
        };
        let limit = document
            .scoring_limit
            .as_ref()
            .map(|text| self.duration(text))
            .transpose()?;
        Ok(Hidden {
            cases,
            shapes,
            distributions,
            probes,
            traces,
            max_bytes: document
                .max_bytes
                .as_ref()
                .map_or(64 << 20, |bytes| bytes.value.0),
            max_flops,
            scoring_limit_s: limit.map_or(20.0, |limit| limit.as_secs_f64()),
        })
    }

    fn distribution(
        &self,
        entry: &At<TextOr<crate::document::DistributionDocument>>,
        inputs: &[Input],
    ) -> Result<Distribution, ContractError> {
        match &entry.value {
            TextOr::Table(table) => Ok(Distribution {
                name: table.name.value.clone(),
                fills: self.fills(&table.fill, inputs)?,
            }),
            TextOr::Text(text) => {
                let fill = self.fill(&At {
                    span: entry.span.clone(),
                    value: text.clone(),
                })?;
                let floats = inputs
                    .iter()
                    .filter(|input| self.dtypes(&input.dtype).iter().any(|dtype| dtype.is_float()));
                Ok(Distribution {
                    name: text.clone(),
                    fills: floats.map(|input| (input.name.clone(), fill.clone())).collect(),
                })
            }
        }
    }

    fn known_input(&self, name: &At<String>, inputs: &[Input]) -> Result<(), ContractError> {
        if inputs.iter().any(|input| input.name == name.value)
            || self.names.get(&name.value) == Some(&Kind::Scalar)
        {
            return Ok(());
        }
        let near = nearest(name, inputs.iter().map(|input| input.name.as_str()));
        Err(self
            .error(&name.span, format!("there is no input `{}`", name.value))
            .expected("expected an input")
            .maybe_help(near.map(|near| format!("did you mean `{near}`?"))))
    }

    fn fills(
        &self,
        fills: &Ordered<At<String>>,
        inputs: &[Input],
    ) -> Result<BTreeMap<String, Fill<Expr>>, ContractError> {
        let mut parsed = BTreeMap::new();
        for (name, text) in &fills.0 {
            self.known_input(name, inputs)?;
            parsed.insert(name.value.clone(), self.fill(text)?);
        }
        Ok(parsed)
    }

    fn partial_axes(&self, given: &Ordered<At<i64>>, axes: &[Axis]) -> Result<AxisValues, ContractError> {
        let mut values = AxisValues::new();
        for (name, value) in &given.0 {
            let Some(axis) = axes.iter().find(|axis| axis.name == name.value) else {
                let near = nearest(name, axes.iter().map(|axis| axis.name.as_str()));
                return Err(self
                    .error(&name.span, format!("there is no axis `{}`", name.value))
                    .expected("expected an axis")
                    .maybe_help(near.map(|near| format!("did you mean `{near}`?"))));
            };
            if let Some(expected) = axis.kind.refuses(value.value) {
                return Err(self
                    .error(
                        &value.span,
                        format!("axis `{}` is never {}", axis.name, value.value),
                    )
                    .expected(format!("expected {expected}")));
            }
            values.insert(name.value.clone(), value.value);
        }
        Ok(values)
    }

    fn all_axes(&self, given: &At<Ordered<At<i64>>>, axes: &[Axis]) -> Result<AxisValues, ContractError> {
        let values = self.partial_axes(given, axes)?;
        let missing = axes
            .iter()
            .find(|axis| !matches!(axis.kind, AxisKind::Expr(_)) && !values.contains_key(&axis.name));
        match missing {
            None => Ok(values),
            Some(axis) => Err(self
                .error(&given.span, format!("axis `{}` has no size", axis.name))
                .expected("expected all axes that are not expressions")),
        }
    }

    pub(super) fn workloads(
        &self,
        documents: &At<Vec<At<WorkloadDocument>>>,
        axes: &[Axis],
    ) -> Result<Vec<Workload>, ContractError> {
        if documents.is_empty() {
            return Err(self
                .error(&documents.span, "there are no workloads")
                .expected("expected at least one workload"));
        }
        let mut workloads: Vec<Workload> = Vec::new();
        for document in documents.iter() {
            if workloads.iter().any(|known| known.name == document.name.value) {
                return Err(self
                    .error(
                        &document.name.span,
                        format!("two workloads are called `{}`", document.name.value),
                    )
                    .expected("expected a new name"));
            }
            let weight = document
                .weight
                .as_ref()
                .map_or(Ok(1.0), |w| self.within(w, 1e-6, 1e6, "weight"))?;
            let backends = document.backends.as_deref().unwrap_or_default();
            workloads.push(Workload {
                name: document.name.value.clone(),
                axes: self.all_axes(&document.axes, axes)?,
                weight,
                backends: backends.iter().map(|backend| backend.value).collect(),
                phase: document.phase,
            });
        }
        Ok(workloads)
    }
}

impl AxisKind {
    /// What would be allowed, if `value` is not. An axis with an expression checks itself at binding.
    pub(crate) fn refuses(&self, value: i64) -> Option<String> {
        match self {
            Self::Range {
                min,
                max,
                multiple_of,
            } => {
                let fits = value >= *min && value <= *max && value % multiple_of == 0;
                (!fits).then(|| match multiple_of {
                    1 => format!("{min} to {max}"),
                    _ => format!("{min} to {max} in multiples of {multiple_of}"),
                })
            }
            Self::Values(values) => {
                let list = || values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                (!values.contains(&value)).then(|| format!("one of {}", list()))
            }
            Self::Expr(_) => None,
        }
    }
}

/// One distribution per position in the inputs' lists of hidden fills, after the dev fills themselves.
fn derived(inputs: &[Input]) -> Vec<Distribution> {
    let longest = inputs.iter().map(|input| input.hidden.len()).max().unwrap_or(0);
    let mut all = vec![Distribution {
        name: "dev".to_owned(),
        fills: BTreeMap::new(),
    }];
    for index in 0..longest {
        let fills: BTreeMap<_, _> = inputs
            .iter()
            .filter(|input| !input.hidden.is_empty())
            .map(|input| {
                (
                    input.name.clone(),
                    input.hidden[index % input.hidden.len()].clone(),
                )
            })
            .collect();
        let mut names: Vec<_> = fills.values().map(Fill::to_string).collect();
        names.sort();
        names.dedup();
        all.push(Distribution {
            name: names.join(" + "),
            fills,
        });
    }
    all
}
