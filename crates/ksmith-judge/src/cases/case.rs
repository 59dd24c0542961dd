//! One case: where its inputs come from, the inputs themselves, and what the reference expects.

use std::sync::Arc;

use ksmith_task::expr::Value;
use ksmith_task::{Bound, DType, Fill, Role, ScalarValue, Tensor};
use ksmith_worker::cuda::{DrawLaw, DrawType};
use rayon::prelude::*;

use super::draw::{self, Target, draw};
use super::layout::{POISONS, scatter};
use super::secret::Secret;
use super::stream::{BLOCK, Key, unit};
use crate::device::Resident;
use crate::number::{self, Values};

/// How one input tensor of a case is filled.
#[derive(Debug, Clone, PartialEq)]
pub enum InputFill {
    /// One fill for the whole tensor.
    One(Fill),
    /// Each row (last dimension) takes one of these fills: rows of mixed amplitude and kind.
    Rows(Vec<Fill>),
    /// These values (recorded tensors).
    Given(Arc<Values>),
}

/// Where a case comes from.
#[derive(Debug, Clone)]
pub struct CaseSpec {
    /// Sizes, tensors, scalars.
    pub bound: Arc<Bound>,
    /// One per input tensor.
    pub fills: Vec<InputFill>,
    /// The secret that its values are drawn from.
    pub secret: Secret,
    /// Stream name: workload and use.
    pub stream: String,
    /// Number within the stream.
    pub number: u64,
    /// What writers may see of it.
    pub sight: Sight,
}

/// What writers may see of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Everything.
    Dev,
    /// Gate, code and class of cause only.
    Hidden,
}

/// The value of a scalar argument in one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarDraw {
    /// A float, rounded to its dtype.
    Real(DType, f64),
    /// An integer.
    Whole(DType, i64),
}

/// The inputs of one case.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// Row-major values, rounded to their dtypes; in the order of the input tensors.
    pub values: Vec<Values>,
    /// Scalars in order.
    pub scalars: Vec<ScalarDraw>,
}

/// What the reference says of one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The expectation, row-major.
    pub want: Values,
    /// The scale output, where the contract has one.
    pub scale: Option<Vec<f64>>,
}

/// A case, ready to be revealed.
#[derive(Debug, Clone)]
pub struct Case {
    /// Where it comes from.
    pub spec: CaseSpec,
    /// Its inputs.
    pub inputs: Inputs,
    /// Input storage as it is revealed: elements in place, gaps poisoned.
    pub storage: Vec<Vec<u8>>,
    /// Expectations in the order of the outputs.
    pub expected: Vec<Expected>,
    /// Inputs and expectations on a device; where they lie there, the host's own may be empty.
    pub(crate) resident: Option<Arc<Resident>>,
}

/// How a device draws an input.
pub(crate) struct DeviceDraw {
    /// Law, type and key of each fill.
    pub(crate) laws: Vec<(DrawLaw, DrawType, [u8; 32])>,
    /// Of a tensor of mixed rows: which fill each row takes, and the length of a row.
    pub(crate) rows: Option<(Vec<u8>, usize)>,
}

impl CaseSpec {
    fn key(&self, what: &str) -> Key {
        Key::new(&self.secret, &self.stream, self.number, what)
    }

    /// Draws the scalars.
    pub(crate) fn scalars(&self) -> Vec<ScalarDraw> {
        self.bound
            .scalars
            .iter()
            .map(|scalar| {
                let value = match &scalar.value {
                    ScalarValue::Fixed(Value::Int(value)) => Values::Whole(vec![*value]),
                    ScalarValue::Fixed(Value::Bool(value)) => Values::Whole(vec![i64::from(*value)]),
                    ScalarValue::Fixed(value) => Values::Real(vec![value.as_f64().unwrap_or(0.0)]),
                    ScalarValue::Drawn(fill) => {
                        let target = Target {
                            dtype: scalar.dtype,
                            shape: &[],
                            domain: None,
                        };
                        draw(fill, &target, &self.key(&scalar.name))
                    }
                };
                scalar_draw(scalar.dtype, &value)
            })
            .collect()
    }

    /// What a device needs to draw input `index`; `None` where only the host can.
    pub(crate) fn device_draw(&self, index: usize) -> Option<DeviceDraw> {
        let (tensor, target) = self.target(index)?;
        let one = |fill: &Fill, key: Key| {
            let (law, drawn) = draw::on_device(fill, &target)?;
            Some((law, drawn, *key.bytes()))
        };
        match self.fills.get(index)? {
            InputFill::One(fill) => Some(DeviceDraw {
                laws: vec![one(fill, self.key(&tensor.name))?],
                rows: None,
            }),
            InputFill::Rows(fills) => Some(DeviceDraw {
                laws: fills
                    .iter()
                    .enumerate()
                    .map(|(number, fill)| one(fill, self.row_key(tensor, number)))
                    .collect::<Option<_>>()?,
                rows: Some((
                    self.row_choice(tensor, &target, fills.len())
                        .into_iter()
                        .map(u8::try_from)
                        .collect::<Result<_, _>>()
                        .ok()?,
                    target.row().max(1),
                )),
            }),
            InputFill::Given(_) => None,
        }
    }

    /// The storage of one block of input `index`, drawn alone.
    pub(crate) fn block(&self, index: usize, block: usize) -> Option<Vec<u8>> {
        let (tensor, target) = self.target(index)?;
        match self.fills.get(index)? {
            InputFill::One(fill) => draw::block(fill, &target, &self.key(&tensor.name), block),
            InputFill::Rows(fills) => {
                let parts = fills
                    .iter()
                    .enumerate()
                    .map(|(number, fill)| draw::block(fill, &target, &self.row_key(tensor, number), block))
                    .collect::<Option<Vec<_>>>()?;
                let choice = self.row_choice(tensor, &target, fills.len());
                let (row, width) = (target.row().max(1), tensor.dtype.bytes());
                let mut mixed = parts.first()?.clone();
                for (at, element) in mixed.chunks_mut(width).enumerate() {
                    let from = parts.get(*choice.get((block * BLOCK + at) / row)?)?;
                    element.copy_from_slice(from.get(at * width..(at + 1) * width)?);
                }
                Some(mixed)
            }
            InputFill::Given(_) => None,
        }
    }

    fn target(&self, index: usize) -> Option<(&Tensor, Target<'_>)> {
        let tensor = self.bound.inputs().nth(index)?;
        let Role::Input(rule) = &tensor.role else {
            return None;
        };
        let target = Target {
            dtype: tensor.dtype,
            shape: &tensor.shape,
            domain: rule.domain,
        };
        Some((tensor, target))
    }

    /// Which of `fills` fills each row of a mixed tensor takes.
    fn row_choice(&self, tensor: &Tensor, target: &Target<'_>, fills: usize) -> Vec<usize> {
        let mut choice = vec![0; target.len().div_ceil(target.row().max(1))];
        self.key(&format!("{}: rows", tensor.name))
            .block(0)
            .fill(&mut choice);
        choice
            .into_iter()
            .map(|bits| ((unit(bits) * fills as f64) as usize).min(fills.saturating_sub(1)))
            .collect()
    }

    fn row_key(&self, tensor: &Tensor, number: usize) -> Key {
        self.key(&format!("{}: {number}", tensor.name))
    }

    /// The storage of input `index` alone.
    pub(crate) fn storage(&self, index: usize) -> Option<Vec<u8>> {
        let tensor = self.bound.inputs().nth(index)?;
        let values = self.draw_tensor(tensor, self.fills.get(index)?);
        Some(storage(tensor, &values))
    }

    /// Draws inputs and scalars.
    pub fn draw(&self) -> Inputs {
        let values = self
            .bound
            .inputs()
            .zip(&self.fills)
            .map(|(tensor, fill)| self.draw_tensor(tensor, fill))
            .collect();
        Inputs {
            values,
            scalars: self.scalars(),
        }
    }

    fn draw_tensor(&self, tensor: &Tensor, fill: &InputFill) -> Values {
        let Role::Input(rule) = &tensor.role else {
            return Values::Real(Vec::new());
        };
        let target = Target {
            dtype: tensor.dtype,
            shape: &tensor.shape,
            domain: rule.domain,
        };
        match fill {
            InputFill::One(fill) => draw(fill, &target, &self.key(&tensor.name)),
            InputFill::Given(values) => (**values).clone(),
            InputFill::Rows(fills) => {
                let row = target.row().max(1);
                let drawn: Vec<Values> = fills
                    .iter()
                    .enumerate()
                    .map(|(number, fill)| draw(fill, &target, &self.row_key(tensor, number)))
                    .collect();
                let rows = self
                    .row_choice(tensor, &target, drawn.len())
                    .into_iter()
                    .enumerate();
                match drawn.first() {
                    Some(Values::Real(_)) => Values::Real(
                        rows.flat_map(|(at, from)| match &drawn[from] {
                            Values::Real(values) => values[at * row..(at + 1) * row].to_vec(),
                            Values::Whole(_) => Vec::new(),
                        })
                        .collect(),
                    ),
                    Some(Values::Whole(_)) => Values::Whole(
                        rows.flat_map(|(at, from)| match &drawn[from] {
                            Values::Whole(values) => values[at * row..(at + 1) * row].to_vec(),
                            Values::Real(_) => Vec::new(),
                        })
                        .collect(),
                    ),
                    None => Values::Real(vec![0.0; target.len()]),
                }
            }
        }
    }
}

/// The seed that a task's own generator gets for a case: it says nothing about the secret.
pub(crate) fn seed_of(spec: &CaseSpec) -> u64 {
    spec.key("generator").block(0).bits()
}

fn scalar_draw(dtype: DType, values: &Values) -> ScalarDraw {
    match values {
        Values::Whole(values) if !dtype.is_float() => {
            let (least, most) = number::whole_range(dtype);
            ScalarDraw::Whole(dtype, values.first().copied().unwrap_or(0).clamp(least, most))
        }
        values if dtype.is_float() => ScalarDraw::Real(
            dtype,
            number::round(dtype, if values.is_empty() { 0.0 } else { values.real(0) }),
        ),
        values => ScalarDraw::Whole(
            dtype,
            number::round_whole(dtype, if values.is_empty() { 0.0 } else { values.real(0) }),
        ),
    }
}

/// Elements encoded by one thread at a time.
const PART: usize = 1 << 16;

/// The storage of an input as it is revealed.
pub fn storage(tensor: &Tensor, values: &Values) -> Vec<u8> {
    let width = tensor.dtype.bytes();
    let mut elements = vec![0; tensor.len() * width];
    match values {
        Values::Real(values) => elements
            .par_chunks_mut(PART * width)
            .zip(values.par_chunks(PART))
            .for_each(|(bytes, values)| number::encode_reals(tensor.dtype, values, bytes)),
        Values::Whole(_) => number::encode(tensor.dtype, values, &mut elements),
    }
    if tensor.is_contiguous() && elements.len() == tensor.extent_bytes {
        return elements;
    }
    let mut storage = vec![POISONS[0]; tensor.extent_bytes];
    scatter(tensor, &elements, &mut storage);
    storage
}
