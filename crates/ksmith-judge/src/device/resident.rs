//! A case of a pool on the device: inputs to copy to a worker's buffers, expectations to compare with.

use ksmith_task::contract::Compare;
use ksmith_task::{Role, Tensor};
use ksmith_worker::cuda::{Buffer, BufferAccess, Compared, CudaError, RealRule, WholeRule};

use super::Device;
use crate::cases::{Case, Expected};
use crate::compare::{Overflow, Rule};
use crate::gates::rule;
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

impl Resident {
    /// Copies a case to the device; `None` where an output compares in a way that only the host knows (choices,
    /// checkers, exact floats, strides).
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
        let count = tensor.len();
        if count == 0 {
            return Ok(None);
        }
        let (checks, owner) = (&device.checks, &device.owner);
        let (compared, cause) = match self.outputs.get(index) {
            Some(Held::Real { rule, want, scale }) => (
                checks.real(owner, rule, got, want, scale.as_ref(), count)?,
                "wrong-value",
            ),
            Some(Held::Whole { rule, want }) => (
                checks.whole(owner, tensor.dtype, *rule, got, want, count)?,
                "wrong-integer",
            ),
            None => (None, "wrong-value"),
        };
        Ok(match compared {
            Some(Compared {
                values: 0,
                non_finite: 0,
                ..
            }) => None,
            Some(Compared { values: 0, .. }) => Some("non-finite"),
            // A comparison that did not happen never passes.
            Some(_) | None => Some(cause),
        })
    }
}

fn held(device: &Device, tensor: &Tensor, expected: &Expected) -> Result<Option<Held>, CudaError> {
    let Role::Output(output) = &tensor.role else {
        return Ok(None);
    };
    let host_only = match output.compare {
        Compare::Elementwise | Compare::Rounded { .. } => false,
        Compare::Exact => tensor.dtype.is_float(),
        // Choices, checkers, and comparisons that this build does not know.
        _ => true,
    };
    if host_only || output.along.is_some() || !tensor.is_contiguous() || expected.want.len() != tensor.len() {
        return Ok(None);
    }
    let owner = &device.owner;
    let reals = |values: &[f64]| -> Result<Buffer, CudaError> {
        let buffer = owner.buffer(values.len() * 8, 256, BufferAccess::Input)?;
        owner.write_reals(&buffer, values)?;
        Ok(buffer)
    };
    Ok(match &expected.want {
        Values::Real(want) if tensor.dtype.is_float() => Some(Held::Real {
            rule: real_rule(&rule(tensor)),
            want: reals(want)?,
            scale: expected.scale.as_deref().map(reals).transpose()?,
        }),
        Values::Real(want) => {
            let (least, most) = number::whole_range(tensor.dtype);
            let Compare::Rounded { tie } = output.compare else {
                return Ok(None);
            };
            Some(Held::Whole {
                rule: WholeRule::Within {
                    slack: 0.5 + tie,
                    least: least as f64,
                    most: most as f64,
                },
                want: reals(want)?,
            })
        }
        Values::Whole(want) if !tensor.dtype.is_float() => {
            let buffer = owner.buffer(want.len() * 8, 256, BufferAccess::Input)?;
            owner.write_wholes(&buffer, want)?;
            Some(Held::Whole {
                rule: WholeRule::Exact,
                want: buffer,
            })
        }
        Values::Whole(_) => None,
    })
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
