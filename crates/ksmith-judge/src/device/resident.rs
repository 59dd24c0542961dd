//! A case of a pool on the device: inputs to copy to a worker's buffers, expectations to compare with.

use ksmith_task::contract::Compare;
use ksmith_task::{Bound, Role, Tensor};
use ksmith_worker::cuda::{Buffer, BufferAccess, Compared, CudaError, RealRule, WholeRule};

use super::Device;
use crate::cases::{Case, Expected};
use crate::compare::{Cause, Outcome, Overflow, Rule, Worst};
use crate::gates::{Judgement, rule};
use crate::number::{self, Values};

/// A case on the device.
pub(crate) struct Resident {
    inputs: Vec<Buffer>,
    outputs: Vec<Held>,
}

impl std::fmt::Debug for Resident {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resident")
            .field("inputs", &self.inputs.len())
            .finish_non_exhaustive()
    }
}

/// The expectation of one output.
enum Held {
    Real {
        rule: RealRule,
        want: Buffer,
        scale: Option<Buffer>,
    },
    Whole {
        rule: WholeRule,
        want: Buffer,
    },
}

impl Held {
    /// An output's rule over expectations that lie on the device; `None` where only the host knows how to compare.
    fn new(tensor: &Tensor, want: Buffer, scale: Option<Buffer>) -> Option<Self> {
        Some(match comparison(tensor)? {
            Comparison::Real(rule) => Self::Real { rule, want, scale },
            Comparison::Whole(rule) => Self::Whole { rule, want },
        })
    }
}

/// How an output is compared on a device.
enum Comparison {
    Real(RealRule),
    Whole(WholeRule),
}

/// `None` for choices, checkers, exact floats and strides: only the host knows these.
fn comparison(tensor: &Tensor) -> Option<Comparison> {
    let Role::Output(output) = &tensor.role else {
        return None;
    };
    if output.along.is_some() || !tensor.is_contiguous() {
        return None;
    }
    match (&output.compare, tensor.dtype.is_float()) {
        (Compare::Elementwise, true) => Some(Comparison::Real(real_rule(&rule(tensor)))),
        (Compare::Elementwise | Compare::Exact, false) => Some(Comparison::Whole(WholeRule::Exact)),
        (Compare::Rounded { tie }, false) => {
            let (least, most) = number::whole_range(tensor.dtype);
            Some(Comparison::Whole(WholeRule::Within {
                slack: 0.5 + tie,
                least: least as f64,
                most: most as f64,
            }))
        }
        _ => None,
    }
}

impl Resident {
    /// Whether every output of a workload can be compared on a device.
    pub(crate) fn holds(bound: &Bound) -> bool {
        bound.outputs().all(|tensor| comparison(tensor).is_some())
    }

    /// Copies a case to the device; `None` where an output compares in a way that only the host knows.
    pub(crate) fn of(device: &Device, case: &Case) -> Result<Option<Self>, CudaError> {
        let bound = &case.spec.bound;
        let mut outputs = Vec::new();
        for (tensor, expected) in bound.outputs().zip(&case.expected) {
            match held(device, tensor, expected)? {
                Some(held) => outputs.push(held),
                None => return Ok(None),
            }
        }
        let mut inputs = Vec::new();
        for storage in &case.storage {
            let buffer = device.owner.buffer(storage.len(), 256, BufferAccess::Input)?;
            device.owner.write(&buffer, storage)?;
            inputs.push(buffer);
        }
        Ok(Some(Self { inputs, outputs }))
    }

    /// A case whose inputs and expectations (each with its scale) were made on the device.
    pub(super) fn with(
        bound: &Bound,
        inputs: Vec<Buffer>,
        expected: impl Iterator<Item = (Buffer, Option<Buffer>)>,
    ) -> Option<Self> {
        let outputs = bound
            .outputs()
            .zip(expected)
            .map(|(tensor, (want, scale))| Held::new(tensor, want, scale))
            .collect::<Option<Vec<_>>>()?;
        (outputs.len() == bound.outputs().count()).then_some(Self { inputs, outputs })
    }

    /// The copy of one input's storage.
    pub(crate) fn input(&self, index: usize) -> Option<&Buffer> {
        self.inputs.get(index)
    }

    /// Compares one output where it lies; the cause of the first finding, if there is one.
    pub(crate) fn check(
        &self,
        device: &Device,
        index: usize,
        tensor: &Tensor,
        got: &Buffer,
    ) -> Result<Option<&'static str>, CudaError> {
        Ok(self.outcome(device, index, tensor, got)?.cause.map(Cause::code))
    }

    /// Compares all outputs, as the host would; `output` says where each lies.
    pub(crate) fn judge<'b>(
        &self,
        device: &Device,
        bound: &Bound,
        output: impl Fn(usize) -> Option<&'b Buffer>,
    ) -> Result<Judgement, CudaError> {
        let mut judgement = Judgement {
            failed: None,
            ratio: 0.0,
        };
        for (index, tensor) in bound.outputs().enumerate() {
            let outcome = match output(index) {
                Some(got) => self.outcome(device, index, tensor, got)?,
                None => failing(Cause::Unwritten),
            };
            if tensor.dtype.is_float() && outcome.ratio.is_finite() {
                judgement.ratio = judgement.ratio.max(outcome.ratio);
            }
            if !outcome.passed() && judgement.failed.is_none() {
                judgement.failed = Some((tensor.name.clone(), outcome));
            }
        }
        Ok(judgement)
    }

    /// How one output compares.
    fn outcome(
        &self,
        device: &Device,
        index: usize,
        tensor: &Tensor,
        got: &Buffer,
    ) -> Result<Outcome, CudaError> {
        let count = tensor.len();
        if count == 0 {
            return Ok(Outcome::PASS);
        }
        let (checks, owner) = (&device.checks, &device.owner);
        let (compared, cause) = match self.outputs.get(index) {
            Some(Held::Real { rule, want, scale }) => (
                checks.real(owner, rule, got, want, scale.as_ref(), count)?,
                Cause::Value,
            ),
            Some(Held::Whole { rule, want }) => (
                checks.whole(owner, tensor.dtype, *rule, got, want, count)?,
                Cause::Integer,
            ),
            None => (None, Cause::Value),
        };
        // A comparison that did not happen never passes.
        let Some(compared) = compared else {
            return Ok(failing(cause));
        };
        let Compared {
            values,
            non_finite,
            ratio,
            first,
        } = compared;
        let failures = usize::try_from(values + non_finite).unwrap_or(usize::MAX);
        let worst = match first {
            Some(first) => self.element(device, index, tensor, got, first)?,
            None => None,
        };
        Ok(Outcome {
            failures,
            cause: match (values, non_finite) {
                (0, 0) => None,
                (0, _) => Some(Cause::NonFinite),
                _ => Some(cause),
            },
            worst,
            ratio,
        })
    }

    /// One element of an output beside its expectation.
    fn element(
        &self,
        device: &Device,
        index: usize,
        tensor: &Tensor,
        got: &Buffer,
        element: usize,
    ) -> Result<Option<Worst>, CudaError> {
        let owner = &device.owner;
        let word = |buffer: &Buffer| -> Result<[u8; 8], CudaError> {
            let mut bytes = [0; 8];
            owner.read_part(buffer, element * 8, &mut bytes)?;
            Ok(bytes)
        };
        let width = tensor.dtype.bytes();
        let mut bytes = vec![0; width];
        owner.read_part(got, element * width, &mut bytes)?;
        let got = number::decode(tensor.dtype, &bytes).real(0);
        let (want, bound) = match self.outputs.get(index) {
            None => return Ok(None),
            Some(Held::Real { rule, want, scale }) => {
                let want = f64::from_le_bytes(word(want)?);
                let scale = match scale {
                    Some(scale) => f64::from_le_bytes(word(scale)?),
                    None => 0.0,
                };
                (want, rule.atol + rule.rtol * want.abs() + rule.ctol * scale)
            }
            Some(Held::Whole { rule, want }) => match rule {
                WholeRule::Exact => (i64::from_le_bytes(word(want)?) as f64, 0.0),
                WholeRule::Within { slack, .. } => (f64::from_le_bytes(word(want)?), *slack),
            },
        };
        Ok(Some(Worst {
            index: element,
            got,
            want,
            bound,
        }))
    }

    /// Largest distance between these expectations and those of the host, as a share of the tolerance (of scales: of
    /// themselves; of integers: none is allowed; of values before rounding: of the tie).
    pub(super) fn distance(&self, device: &Device, host: &Case) -> Result<f64, CudaError> {
        let words = |buffer: &Buffer| -> Result<Vec<[u8; 8]>, CudaError> {
            let mut bytes = vec![0; buffer.bytes()];
            device.owner.read(buffer, &mut bytes)?;
            Ok(bytes.as_chunks::<8>().0.to_vec())
        };
        let reals = |buffer: &Buffer| -> Result<Vec<f64>, CudaError> {
            Ok(words(buffer)?.into_iter().map(f64::from_le_bytes).collect())
        };
        let mut worst = 0.0f64;
        for (held, expected) in self.outputs.iter().zip(&host.expected) {
            let apart = match (held, &expected.want) {
                (Held::Real { rule, want, scale }, Values::Real(wanted)) => {
                    let scales = scale.as_ref().map(reals).transpose()?;
                    let bound = |at: usize| {
                        let scale = expected.scale.as_ref().map_or(0.0, |scale| scale[at]);
                        rule.atol + rule.rtol * wanted[at].abs() + rule.ctol * scale
                    };
                    let values = farthest(&reals(want)?, wanted, bound);
                    match (&scales, &expected.scale) {
                        (Some(ours), Some(theirs)) => {
                            values.max(farthest(ours, theirs, |at| theirs[at].abs()))
                        }
                        (None, None) => values,
                        _ => f64::INFINITY,
                    }
                }
                (
                    Held::Whole {
                        rule: WholeRule::Within { slack, .. },
                        want,
                    },
                    Values::Real(wanted),
                ) => {
                    let tie = (slack - 0.5).max(1e-9);
                    farthest(&reals(want)?, wanted, |_| tie)
                }
                (
                    Held::Whole {
                        rule: WholeRule::Exact,
                        want,
                    },
                    Values::Whole(wanted),
                ) => {
                    let ours: Vec<i64> = words(want)?.into_iter().map(i64::from_le_bytes).collect();
                    if ours == *wanted { 0.0 } else { f64::INFINITY }
                }
                _ => f64::INFINITY,
            };
            worst = worst.max(apart);
        }
        Ok(worst)
    }
}

/// Largest difference over `bound`; values that are not finite must be the same.
fn farthest(ours: &[f64], theirs: &[f64], bound: impl Fn(usize) -> f64) -> f64 {
    if ours.len() != theirs.len() {
        return f64::INFINITY;
    }
    let one = |(at, (ours, theirs)): (usize, (&f64, &f64))| {
        if ours == theirs || (ours.is_nan() && theirs.is_nan()) {
            return 0.0;
        }
        let apart = (ours - theirs).abs() / bound(at);
        if apart.is_nan() { f64::INFINITY } else { apart }
    };
    ours.iter().zip(theirs).enumerate().map(one).fold(0.0, f64::max)
}

fn failing(cause: Cause) -> Outcome {
    Outcome {
        failures: 1,
        cause: Some(cause),
        worst: None,
        ratio: f64::INFINITY,
    }
}

/// Copies the expectation of one output to the device.
fn held(device: &Device, tensor: &Tensor, expected: &Expected) -> Result<Option<Held>, CudaError> {
    if comparison(tensor).is_none() || expected.want.len() != tensor.len() {
        return Ok(None);
    }
    let owner = &device.owner;
    let reals = |values: &[f64]| -> Result<Buffer, CudaError> {
        let buffer = owner.buffer(values.len() * 8, 256, BufferAccess::Input)?;
        owner.write_reals(&buffer, values)?;
        Ok(buffer)
    };
    let want = match &expected.want {
        Values::Real(want) => reals(want)?,
        Values::Whole(want) => {
            let buffer = owner.buffer(want.len() * 8, 256, BufferAccess::Input)?;
            owner.write_wholes(&buffer, want)?;
            buffer
        }
    };
    let scale = expected.scale.as_deref().map(reals).transpose()?;
    Ok(Held::new(tensor, want, scale).filter(|held| {
        // What the reference gave must be of the kind that the comparison reads.
        let real = matches!(expected.want, Values::Real(_));
        match held {
            Held::Real { .. }
            | Held::Whole {
                rule: WholeRule::Within { .. },
                ..
            } => real,
            Held::Whole {
                rule: WholeRule::Exact,
                ..
            } => !real,
        }
    }))
}

/// The host's rule in the device's terms.
pub(crate) fn real_rule(rule: &Rule) -> RealRule {
    let limit = match rule.overflow {
        Overflow::Inf if number::round(rule.dtype, f64::INFINITY).is_nan() => f64::NAN,
        Overflow::Inf => f64::INFINITY,
        Overflow::Saturate => number::largest(rule.dtype),
        Overflow::Nan => f64::NAN,
    };
    RealRule {
        dtype: rule.dtype,
        atol: rule.atol,
        rtol: rule.rtol,
        ctol: rule.ctol,
        edge: number::overflow_edge(rule.dtype),
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_value_counts_and_what_is_not_finite_must_be_the_same() {
        let bound = |_: usize| 0.5;
        assert_eq!(farthest(&[1.0, 2.0], &[1.0, 2.25], bound), 0.5);
        assert_eq!(
            farthest(&[f64::NAN, f64::INFINITY], &[f64::NAN, f64::INFINITY], bound),
            0.0
        );
        assert_eq!(farthest(&[1.0], &[f64::NAN], bound), f64::INFINITY);
        assert_eq!(farthest(&[1.0], &[1.0, 1.0], bound), f64::INFINITY);
        assert_eq!(farthest(&[0.0], &[1e-9], |_| 0.0), f64::INFINITY);
    }
}
