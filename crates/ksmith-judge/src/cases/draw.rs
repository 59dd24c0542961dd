//! Drawing one tensor from a fill: pointwise laws, block by block, on every thread.
//!
//! Each element's value depends only on the key, the fill and its position. Values are rounded to the dtype at once,
//! because the reference must see what the candidate sees.

use ksmith_task::contract::Domain;
use ksmith_task::{DType, Fill};
use ksmith_worker::cuda::{DrawLaw, DrawType};
use rayon::prelude::*;

use super::domain;
use super::quantile;
use super::stream::{BLOCK, Key, below, unit};
use super::structured;
use crate::number::{self, Values};

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes, row-major.
    pub shape: &'a [usize],
    /// Values outside are never drawn.
    pub domain: Option<Domain>,
}

impl Target<'_> {
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Length of the last dimension; 1 for a tensor without dimensions.
    pub(crate) fn row(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }
}

/// Draws a tensor. [`Fill::Generator`] gives zeros here: the task's own program writes those tensors.
pub fn draw(fill: &Fill, target: &Target<'_>, key: &Key) -> Values {
    let mut values = raw(fill, target, key);
    let settle = |value: &mut f64| *value = domain::settle(*value, target.dtype, target.domain.as_ref());
    values
        .par_chunks_mut(BLOCK)
        .for_each(|block| block.iter_mut().for_each(settle));
    if target.dtype.is_float() {
        Values::Real(values)
    } else {
        let (least, most) = number::whole_range(target.dtype);
        Values::Whole(
            values
                .into_iter()
                .map(|value| (value as i64).clamp(least, most))
                .collect(),
        )
    }
}

/// The law and type of a fill as a device draws them; `None` where only the host knows how.
pub(crate) fn on_device(fill: &Fill, target: &Target<'_>) -> Option<(DrawLaw, DrawType)> {
    let law = match Law::of(fill, target.dtype)? {
        Law::Normal { mean, sd } => DrawLaw::Normal { mean, sd },
        Law::Uniform { low, span } => DrawLaw::Uniform { low, span },
        Law::Exponential { low, span, signed } => DrawLaw::Exponential { low, span, signed },
        Law::Constant(value) => DrawLaw::Constant(value),
        Law::Spike { probability, value } => DrawLaw::Spike { probability, value },
        Law::Integers { low, count } => DrawLaw::Integers { low, count },
        Law::Bernoulli(p) => DrawLaw::Bernoulli(p),
        Law::Tiny { .. } | Law::Zipf(_) => return None,
    };
    let drawn = DrawType {
        dtype: target.dtype,
        largest: number::largest(target.dtype),
        range: number::whole_range(target.dtype),
        domain: target.domain,
    };
    Some((law, drawn))
}

/// The storage of the elements of one block, drawn alone; `None` for a fill whose elements depend on each other.
pub(crate) fn block(fill: &Fill, target: &Target<'_>, key: &Key, index: usize) -> Option<Vec<u8>> {
    let law = Law::of(fill, target.dtype)?;
    let count = target.len().saturating_sub(index * BLOCK).min(BLOCK);
    let mut words = vec![0; count * law.words()];
    key.block(index as u64).fill(&mut words);
    let mut values = vec![0.0; count];
    law.fill(&words, &mut values);
    for value in &mut values {
        *value = domain::settle(*value, target.dtype, target.domain.as_ref());
    }
    let mut bytes = vec![0; count * target.dtype.bytes()];
    if target.dtype.is_float() {
        number::encode_reals(target.dtype, &values, &mut bytes);
    } else {
        let whole: Vec<i64> = values.iter().map(|value| *value as i64).collect();
        number::encode_whole(target.dtype, &whole, &mut bytes);
    }
    Some(bytes)
}

fn raw(fill: &Fill, target: &Target<'_>, key: &Key) -> Vec<f64> {
    if let Some(law) = Law::of(fill, target.dtype) {
        return pointwise(&law, target.len(), key);
    }
    match fill {
        Fill::Sorted(inner) => structured::sorted(raw(inner, target, key), target.row()),
        Fill::Permutation { n } => structured::permutation(target.len(), *n as usize, key),
        Fill::Distinct { n } => structured::distinct(target.len(), target.row(), *n as u64, key),
        Fill::OneHot => structured::one_hot(target.len(), target.row(), key),
        Fill::Partition { total } => structured::partition(target.len(), target.row(), *total as u64, key),
        // Generator tensors are written by the task's program; a fill unknown to this build draws nothing.
        _ => vec![0.0; target.len()],
    }
}

/// A fill whose elements do not depend on each other, with its constants precomputed.
enum Law {
    Normal {
        mean: f64,
        sd: f64,
    },
    Uniform {
        low: f64,
        span: f64,
    },
    /// Magnitude `exp(low + span * u)`, with a random sign or without.
    Exponential {
        low: f64,
        span: f64,
        signed: bool,
    },
    Constant(f64),
    Spike {
        probability: f64,
        value: f64,
    },
    Tiny {
        smallest: f64,
        below: f64,
    },
    Integers {
        low: i64,
        count: u64,
    },
    Zipf(Zipf),
    Bernoulli(f64),
}

impl Law {
    fn of(fill: &Fill, dtype: DType) -> Option<Self> {
        let law = match fill {
            Fill::Normal { mean, sd } => Self::Normal { mean: *mean, sd: *sd },
            Fill::Uniform { low, high } => Self::Uniform {
                low: *low,
                span: high - low,
            },
            Fill::LogUniform { low, high } => {
                let (low, high) = (libm::log(*low), libm::log(*high));
                Self::Exponential {
                    low,
                    span: high - low,
                    signed: false,
                }
            }
            Fill::Wide { decades } => {
                let span = decades * core::f64::consts::LN_10;
                Self::Exponential {
                    low: -span / 2.0,
                    span,
                    signed: true,
                }
            }
            Fill::Constant { value } => Self::Constant(*value),
            Fill::Spike { probability, value } => Self::Spike {
                probability: *probability,
                value: *value,
            },
            Fill::Tiny => match dtype.unit_roundoff() {
                // From the smallest subnormal to four times the smallest normal.
                Some(unit) => Self::Tiny {
                    smallest: number::smallest_normal(dtype),
                    below: -libm::log2(unit) - 1.0,
                },
                None => Self::Integers {
                    low: number::whole_range(dtype).0.max(-1),
                    count: 2,
                },
            },
            Fill::Integers { low, high } => Self::Integers {
                low: *low as i64,
                count: (high - low) as u64 + 1,
            },
            Fill::Zipf { n, s } => Self::Zipf(Zipf::new(*n as u64, *s)),
            Fill::Bernoulli { p } => Self::Bernoulli(*p),
            _ => return None,
        };
        Some(law)
    }

    /// Whether an element takes two random words instead of one.
    fn words(&self) -> usize {
        match self {
            Self::Spike { .. } | Self::Zipf(_) => 2,
            _ => 1,
        }
    }

    fn fill(&self, words: &[u64], values: &mut [f64]) {
        // The match stands outside the loops, so that each loop is straight arithmetic.
        match self {
            Self::Normal { mean, sd } => {
                each(words, values, |bits| mean + sd * quantile::normal(unit(bits)));
            }
            Self::Uniform { low, span } => each(words, values, |bits| low + span * unit(bits)),
            Self::Exponential { low, span, signed } => each(words, values, |bits| {
                let magnitude = libm::exp(low + span * unit(bits));
                if *signed && bits & 1 == 1 {
                    -magnitude
                } else {
                    magnitude
                }
            }),
            Self::Constant(value) => values.fill(*value),
            Self::Spike { probability, value } => {
                for (slot, words) in values.iter_mut().zip(words.as_chunks::<2>().0) {
                    let spike = unit(words[0]) < *probability;
                    *slot = if spike {
                        *value
                    } else {
                        quantile::normal(unit(words[1]))
                    };
                }
            }
            Self::Tiny { smallest, below } => each(words, values, |bits| {
                let magnitude = smallest * libm::exp2((below + 2.0) * unit(bits) - below);
                if bits & 1 == 1 { -magnitude } else { magnitude }
            }),
            Self::Integers { low, count } => {
                each(words, values, |bits| {
                    low.saturating_add_unsigned(below(bits, *count)) as f64
                });
            }
            Self::Zipf(zipf) => {
                for (slot, words) in values.iter_mut().zip(words.as_chunks::<2>().0) {
                    *slot = zipf.draw(words[0], words[1]) as f64;
                }
            }
            Self::Bernoulli(p) => each(words, values, |bits| if unit(bits) < *p { 1.0 } else { 0.0 }),
        }
    }
}

#[inline]
fn each(words: &[u64], values: &mut [f64], value: impl Fn(u64) -> f64) {
    for (slot, bits) in values.iter_mut().zip(words) {
        *slot = value(*bits);
    }
}

fn pointwise(law: &Law, len: usize, key: &Key) -> Vec<f64> {
    let mut values = vec![0.0; len];
    values.par_chunks_mut(BLOCK).enumerate().for_each_init(
        || vec![0u64; BLOCK * law.words()],
        |words, (index, block)| {
            let words = &mut words[..block.len() * law.words()];
            key.block(index as u64).fill(words);
            law.fill(words, block);
        },
    );
    values
}

/// `0..n` with weight `1 / (i + 1)^s`: a table for the head, a uniform draw in the (light) rest.
struct Zipf {
    cumulative: Vec<f64>,
    rest: u64,
}

impl Zipf {
    /// Head entries kept in the table.
    const HEAD: u64 = 1 << 16;

    fn new(n: u64, s: f64) -> Self {
        let head = n.clamp(1, Self::HEAD);
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=head)
            .map(|i| {
                sum += libm::pow(i as f64, -s);
                sum
            })
            .collect();
        let rest = n.saturating_sub(head);
        let (from, to) = (head as f64 + 0.5, n as f64 + 0.5);
        let tail = if rest == 0 {
            0.0
        } else if s == 1.0 {
            libm::log(to / from)
        } else {
            (libm::pow(to, 1.0 - s) - libm::pow(from, 1.0 - s)) / (1.0 - s)
        };
        let total = sum + tail;
        cumulative.iter_mut().for_each(|value| *value /= total);
        Self { cumulative, rest }
    }

    fn draw(&self, first: u64, second: u64) -> u64 {
        let place = unit(first);
        let index = self.cumulative.partition_point(|value| *value < place) as u64;
        let head = self.cumulative.len() as u64;
        if index < head {
            index
        } else if self.rest == 0 {
            head - 1
        } else {
            head + below(second, self.rest)
        }
    }
}
