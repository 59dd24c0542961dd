//! Which cases one scoring draws: shapes paired with distributions, probes, traces.

use std::sync::Arc;

use ksmith_task::contract::Hidden;
use ksmith_task::{AxisValues, Backend, Bound, Fill, Instance, Role};

use super::case::{CaseSpec, InputFill, Sight};
use super::near::{Late, Near, late, near};
use super::secret::Secret;
use super::shapes::{axis_ends, draw_large, draw_shape, neighbour};
use super::stream::{Key, Stream};
use crate::judge::JudgeError;

/// Shapes at an axis's end take at most this part of `max_bytes`.
const END_SHARE: u64 = 8;
/// The large hidden shape takes at most this part of `max_bytes` and of `max_flops`.
const LARGE_SHARE: u64 = 2;
/// Without a count of operations in the contract, that part is smaller.
const LARGE_SHARE_UNKNOWN: u64 = 8;
/// Storage of the large hidden shape where only small shapes run.
const LARGE_SMALL: u64 = 8 << 20;
/// Storage of other shapes there.
const OTHER_SMALL: u64 = 1 << 20;

/// Distributions of which late rows are mixed into the usual ones, at most.
const LATE_KINDS: usize = 8;

/// The fills of every input: what dev cases use.
pub fn dev_fills(bound: &Bound) -> Vec<InputFill> {
    fills_by(bound, |rule_fill, _| InputFill::One(rule_fill.clone()))
}

fn fills_by(bound: &Bound, mut choose: impl FnMut(&Fill, &[Fill]) -> InputFill) -> Vec<InputFill> {
    bound
        .inputs()
        .filter_map(|tensor| match &tensor.role {
            Role::Input(rule) => Some(choose(&rule.fill, &rule.hidden)),
            Role::Output(_) => None,
        })
        .collect()
}

/// Number of distributions that a bound workload is drawn from: the longest list of fills, or the named ones.
pub fn distributions(instance: &Instance, bound: &Bound) -> usize {
    let listed = bound
        .inputs()
        .map(|tensor| match &tensor.role {
            Role::Input(rule) => 1 + rule.hidden.len(),
            Role::Output(_) => 1,
        })
        .max()
        .unwrap_or(1);
    listed + instance.task().contract().hidden.distributions.len()
}

/// The fills of distribution `index` (0 is the dev one): each input walks its own list from its own start, so that
/// the lists meet in different pairs from scoring to scoring.
pub fn distribution_fills(
    instance: &Instance,
    bound: &Bound,
    index: usize,
    offsets: &mut Stream,
) -> Result<Vec<InputFill>, JudgeError> {
    let named = &instance.task().contract().hidden.distributions;
    let listed = distributions(instance, bound) - named.len();
    if index >= listed {
        return override_fills(
            bound,
            &named[(index - listed) % named.len().max(1)].fills,
            dev_fills(bound),
        );
    }
    let mut fills = Vec::new();
    for tensor in bound.inputs() {
        let Role::Input(rule) = &tensor.role else { continue };
        let count = 1 + rule.hidden.len();
        let start = if index == 0 || count == listed {
            0
        } else {
            offsets.below(count as u64) as usize
        };
        let at = (index + start) % count;
        fills.push(InputFill::One(if at == 0 {
            rule.fill.clone()
        } else {
            rule.hidden[at - 1].clone()
        }));
    }
    Ok(fills)
}

/// Rows of mixed kind: each row of each input takes one of that input's fills.
pub fn mixed_fills(bound: &Bound) -> Vec<InputFill> {
    fills_by(bound, |fill, hidden| {
        let structured = |fill: &Fill| {
            matches!(
                fill,
                Fill::Partition { .. } | Fill::Permutation { .. } | Fill::Generator | Fill::Distinct { .. }
            )
        };
        if hidden.is_empty() || structured(fill) || hidden.iter().any(structured) {
            InputFill::One(fill.clone())
        } else {
            InputFill::Rows(std::iter::once(fill).chain(hidden).cloned().collect())
        }
    })
}

fn override_fills(
    bound: &Bound,
    by_name: &std::collections::BTreeMap<String, Fill<ksmith_task::expr::Expr>>,
    mut fills: Vec<InputFill>,
) -> Result<Vec<InputFill>, JudgeError> {
    for (tensor, slot) in bound.inputs().zip(&mut fills) {
        if let Some(fill) = by_name.get(&tensor.name) {
            let fill = fill
                .resolve(&bound.env)
                .map_err(|error| JudgeError::Shapes(error.to_string()))?;
            *slot = InputFill::One(fill);
        }
    }
    Ok(fills)
}

/// Draws the plan of one scoring from its secret.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    instance: &'a Instance,
    backend: Backend,
    secret: Secret,
    sight: Sight,
}

impl<'a> Plan<'a> {
    /// A plan of hidden cases.
    pub fn hidden(instance: &'a Instance, secret: &Secret) -> Self {
        Self {
            instance,
            backend: Backend::Cpu,
            secret: secret.clone(),
            sight: Sight::Hidden,
        }
    }

    /// The same plan over the workloads of another backend.
    pub fn on(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// A plan of visible cases from the fixed seed.
    pub fn dev(instance: &'a Instance) -> Self {
        Self {
            instance,
            backend: Backend::Cpu,
            secret: Secret::dev(),
            sight: Sight::Dev,
        }
    }

    /// A stream of decisions (shapes, orders, places).
    pub fn decisions(&self, what: &str) -> Stream {
        Key::new(&self.secret, "decisions", 0, what).block(0)
    }

    /// One case of this plan.
    pub fn case(&self, bound: &Arc<Bound>, fills: Vec<InputFill>, stream: &str, number: u64) -> CaseSpec {
        CaseSpec {
            bound: Arc::clone(bound),
            fills,
            secret: self.secret.clone(),
            stream: stream.to_owned(),
            number,
            sight: self.sight,
        }
    }

    /// The contract's probes without axes of their own, at these shapes in turn.
    pub(super) fn free_probes(
        &self,
        shapes: &[Arc<Bound>],
        stream: &str,
        decisions: &mut Stream,
    ) -> Result<Vec<CaseSpec>, JudgeError> {
        if shapes.is_empty() {
            return Ok(Vec::new());
        }
        let free = self.limits().probes.iter().filter(|probe| probe.axes.is_empty());
        let start = decisions.below(shapes.len() as u64) as usize;
        free.enumerate()
            .map(|(number, probe)| {
                let bound = &shapes[(start + number) % shapes.len()];
                let fills = override_fills(bound, &probe.fills, dev_fills(bound))?;
                Ok(self.case(bound, fills, stream, number as u64))
            })
            .collect()
    }

    /// What a worker is shown at its timed shapes once it is old: the contract's probes, and rows of mixed kind.
    pub(crate) fn late_probes(&self, shapes: &[Arc<Bound>]) -> Result<Vec<CaseSpec>, JudgeError> {
        let mut decisions = self.decisions("late probes");
        let mut cases = self.free_probes(shapes, "late probe", &mut decisions)?;
        cases.extend(
            shapes
                .iter()
                .enumerate()
                .map(|(number, bound)| self.case(bound, mixed_fills(bound), "late mixed", number as u64)),
        );
        Ok(cases)
    }

    pub(crate) fn instance(&self) -> &Instance {
        self.instance
    }

    pub(crate) fn backend(&self) -> Backend {
        self.backend
    }

    fn limits(&self) -> &Hidden {
        &self.instance.task().contract().hidden
    }

    /// Dev workloads with their fills: one case each.
    pub fn workloads(&self, number: u64) -> Result<Vec<(String, CaseSpec)>, JudgeError> {
        self.instance
            .workloads(self.backend)
            .map(|workload| {
                let bound = bind(self.instance, &workload.name, &workload.axes)?;
                let fills = dev_fills(&bound);
                Ok((
                    workload.name.clone(),
                    self.case(&bound, fills, &workload.name, number),
                ))
            })
            .collect()
    }

    /// Cases at which a reference for the device is held to the host's, beside tiny ones such as `some`: every distribution
    /// and rows of mixed kind, at drawn shapes.
    pub(crate) fn device_checks(&self, some: &Arc<Bound>) -> Result<Vec<CaseSpec>, JudgeError> {
        let mut stream = self.decisions("device reference");
        let mut specs = Vec::new();
        for kind in 0..distributions(self.instance, some) {
            let none = AxisValues::new();
            let drawn = draw_shape(self.instance, &mut stream, CHECKED_BYTES, f64::INFINITY, &none);
            let bound = drawn.unwrap_or_else(|| Arc::clone(some));
            let fills = distribution_fills(self.instance, &bound, kind, &mut stream)?;
            specs.push(self.case(&bound, fills, "device reference", kind as u64));
            if kind == 0 {
                specs.push(self.case(&bound, mixed_fills(&bound), "device reference, mixed", 0));
            }
        }
        Ok(specs)
    }

    /// Hidden cases: random shapes, neighbours and each axis's greatest size, each paired with a distribution; every
    /// shape and every distribution occurs at least once. The last case is large: an eighth to a half of `max_bytes`,
    /// which log-uniform draws hardly ever reach.
    pub fn hidden_cases(&self, scale: f64) -> Result<Vec<CaseSpec>, JudgeError> {
        let limits = self.limits();
        let mut stream = self.decisions("hidden shapes");
        let count = limits.shapes.max(1);
        let bytes = (limits.max_bytes as f64 * scale) as u64 / u64::from(count);
        let flops = limits.max_flops * scale / f64::from(count);
        let mut shapes = Vec::new();
        for _ in 0..count {
            if let Some(bound) = draw_shape(
                self.instance,
                &mut stream,
                bytes.max(1 << 12),
                flops.max(1e6),
                &AxisValues::new(),
            ) {
                shapes.push(bound);
            }
        }
        for workload in self.instance.workloads(self.backend) {
            if let Some(bound) = neighbour(self.instance, &mut stream, &workload.axes)
                && bound.storage_bytes() as f64 * scale <= limits.max_bytes as f64
                && (scale >= 1.0 || bound.storage_bytes() <= OTHER_SMALL)
            {
                shapes.push(bound);
            }
        }
        let most = (limits.max_bytes / END_SHARE).min(if scale >= 1.0 { u64::MAX } else { OTHER_SMALL });
        shapes.extend(axis_ends(
            self.instance,
            &mut stream,
            most,
            limits.max_flops * scale / END_SHARE as f64,
        ));
        if shapes.is_empty() {
            return Err(JudgeError::Shapes(
                "no hidden shape could be drawn within the limits".to_owned(),
            ));
        }
        let kinds = distributions(self.instance, &shapes[0]);
        let total = shapes.len().max(kinds).max(limits.cases as usize);
        let first = stream.below(kinds as u64) as usize;
        let mut cases = (0..total)
            .map(|number| {
                let bound = &shapes[number % shapes.len()];
                let kind = (first + number + number / shapes.len().max(kinds)) % kinds;
                let fills = distribution_fills(self.instance, bound, kind, &mut stream)?;
                Ok(self.case(bound, fills, "hidden", number as u64))
            })
            .collect::<Result<Vec<_>, JudgeError>>()?;
        if let Some(bound) = self.large(scale, &mut stream) {
            let kind = stream.below(kinds as u64) as usize;
            let fills = distribution_fills(self.instance, &bound, kind, &mut stream)?;
            cases.push(self.case(&bound, fills, "hidden", total as u64));
        }
        Ok(cases)
    }

    /// The large hidden shape.
    fn large(&self, scale: f64, stream: &mut Stream) -> Option<Arc<Bound>> {
        let limits = self.limits();
        let counted = self.instance.task().contract().cost.flops.is_some();
        let share = if counted { LARGE_SHARE } else { LARGE_SHARE_UNKNOWN };
        let bytes = (limits.max_bytes / share).min(if scale >= 1.0 { u64::MAX } else { LARGE_SMALL });
        let flops = limits.max_flops * scale.max(1.0 / 8.0) / LARGE_SHARE as f64;
        draw_large(self.instance, stream, bytes, flops)
    }

    /// Probes at their own (or small drawn) shapes, then pressure at the dev shapes: the probes' fills, and rows of
    /// mixed kind, so that a kernel cannot switch by size.
    pub fn probes(&self) -> Result<Vec<CaseSpec>, JudgeError> {
        let mut stream = self.decisions("probe shapes");
        let mut cases = Vec::new();
        for (number, probe) in self.limits().probes.iter().enumerate() {
            let bound = draw_shape(self.instance, &mut stream, 256 << 10, f64::INFINITY, &probe.axes)
                .or_else(|| draw_shape(self.instance, &mut stream, u64::MAX, f64::INFINITY, &probe.axes));
            let bound =
                bound.ok_or_else(|| JudgeError::Shapes(format!("probe `{}` fits no shape", probe.name)))?;
            let fills = override_fills(&bound, &probe.fills, dev_fills(&bound))?;
            cases.push(self.case(&bound, fills, "probe", number as u64));
        }
        let workloads: Vec<_> = self.instance.workloads(self.backend).collect();
        for (number, workload) in workloads.iter().enumerate() {
            let bound = bind(self.instance, &workload.name, &workload.axes)?;
            cases.push(self.case(&bound, mixed_fills(&bound), "mixed", number as u64));
        }
        // Every probe without axes of its own also runs at a dev shape.
        let dev = workloads
            .iter()
            .map(|workload| bind(self.instance, &workload.name, &workload.axes))
            .collect::<Result<Vec<_>, _>>()?;
        cases.extend(self.free_probes(&dev, "pressure", &mut stream)?);
        // Inputs that nearly repeat themselves, at small shapes and at the smallest dev shape.
        let smallest = workloads
            .iter()
            .filter_map(|workload| bind(self.instance, &workload.name, &workload.axes).ok())
            .min_by_key(|bound| bound.storage_bytes());
        if let Some(bound) = &smallest {
            // Usual inputs with something unusual further on: each other distribution once.
            for kind in 1..distributions(self.instance, bound).min(LATE_KINDS + 1) {
                for how in [Late::Rows, Late::Elements] {
                    let other = distribution_fills(self.instance, bound, kind, &mut stream)?;
                    let spec = self.case(bound, dev_fills(bound), &format!("late {how:?}"), kind as u64);
                    let other = self.case(bound, other, &format!("odd {how:?}"), kind as u64);
                    cases.push(late(spec, &other, how, &mut stream));
                }
            }
        }
        let drawn = (0..3).filter_map(|_| {
            draw_shape(
                self.instance,
                &mut stream,
                64 << 10,
                f64::INFINITY,
                &AxisValues::new(),
            )
        });
        let shapes: Vec<_> = drawn.chain(smallest).collect();
        for (number, bound) in shapes.iter().enumerate() {
            for how in [Near::Rows, Near::Ends] {
                let spec = self.case(bound, dev_fills(bound), &format!("{how:?}"), number as u64);
                cases.push(near(spec, how, &mut stream));
            }
        }
        if self.backend == Backend::Cuda {
            keep_few_large(&mut cases, &mut stream);
        }
        Ok(cases)
    }
}

/// Storage of the drawn shapes at which a reference for the device is checked, in bytes.
const CHECKED_BYTES: u64 = 1 << 20;
/// A probe of more storage than this is large: drawing and expecting it on the host takes a second.
const LARGE: u64 = 64 << 20;
/// Large probes of one scoring, drawn anew each time; the timed cases put every distribution to these shapes as well.
const FEW: usize = 2;

/// Keeps all small probes and a secret choice of large ones.
fn keep_few_large(specs: &mut Vec<CaseSpec>, stream: &mut Stream) {
    let is_large = |spec: &CaseSpec| spec.bound.storage_bytes() > LARGE;
    let mut large: Vec<usize> = (0..specs.len())
        .filter(|index| is_large(&specs[*index]))
        .collect();
    while large.len() > FEW {
        let out = large.swap_remove(stream.below(large.len() as u64) as usize);
        specs.remove(out);
        for index in &mut large {
            *index -= usize::from(*index > out);
        }
    }
}

/// Binds a workload, with its name in the error.
pub(crate) fn bind(instance: &Instance, name: &str, axes: &AxisValues) -> Result<Arc<Bound>, JudgeError> {
    instance
        .bind(axes)
        .map(Arc::new)
        .map_err(|source| JudgeError::Workload {
            name: name.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_large_probes_few_stay_and_of_small_ones_all() {
        let task =
            ksmith_task::Task::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tasks/softmax")).unwrap();
        let instance = task.instances().remove(0);
        let spec = |rows: i64| {
            let axes = [("rows".to_owned(), rows), ("cols".to_owned(), 4096)]
                .into_iter()
                .collect();
            let bound = Arc::new(instance.bind(&axes).unwrap());
            Plan::dev(&instance).case(&bound, dev_fills(&bound), "probe", rows as u64)
        };
        let mut specs: Vec<CaseSpec> = [1, 8192, 2, 8193, 8194, 3, 8195].map(spec).into();
        let plan = Plan::dev(&instance);
        keep_few_large(&mut specs, &mut plan.decisions("test"));
        let kept: Vec<u64> = specs.iter().map(|spec| spec.number).collect();
        assert_eq!(kept.iter().filter(|rows| **rows < 100).count(), 3);
        assert_eq!(kept.len(), 3 + FEW);
        assert!(
            kept.is_sorted_by_key(|rows| [1, 8192, 2, 8193, 8194, 3, 8195].iter().position(|r| r == rows))
        );
    }
}
