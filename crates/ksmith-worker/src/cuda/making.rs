//! Cases made on the device: drawn inputs, and the wide copies that a float64 reference reads.
//!
//! The laws are those of the host (`ksmith-judge`, `cases/draw.rs`), which draws parts of every tensor again.

use ksmith_task::DType;
use ksmith_task::contract::Domain;

use super::checks::{Checks, DRAW, MAGNITUDES, WIDEN_REAL, WIDEN_WHOLE, address, real_kind, whole_kind};
use super::error::CudaError;
use super::owner::{Buffer, Owner};

/// How elements that do not depend on each other are drawn, with the constants of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DrawLaw {
    /// Normal with this mean and standard deviation.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// `low + span * u` with u in (0, 1).
    Uniform {
        /// Lower end.
        low: f64,
        /// Width.
        span: f64,
    },
    /// Magnitude `exp(low + span * u)`, with a random sign or without.
    Exponential {
        /// Logarithm of the lower end.
        low: f64,
        /// Width of the logarithm.
        span: f64,
        /// Whether signs are random.
        signed: bool,
    },
    /// One value.
    Constant(f64),
    /// A value with a probability, else standard normal.
    Spike {
        /// Probability of the value.
        probability: f64,
        /// The value.
        value: f64,
    },
    /// Integers from `low`.
    Integers {
        /// Smallest.
        low: i64,
        /// How many there are.
        count: u64,
    },
    /// 1 with this probability, else 0.
    Bernoulli(f64),
}

/// Largest magnitude of an exponent that the device's exponential takes.
const MOST_EXPONENT: f64 = 700.0;

impl DrawLaw {
    /// Bytes of the kernel's `Law`; `None` where the device cannot draw it.
    fn bytes(self) -> Option<Vec<u8>> {
        let (kind, words, a, b, low, count) = match self {
            Self::Normal { mean, sd } => (0, 1, mean, sd, 0, 0),
            Self::Uniform { low, span } => (1, 1, low, span, 0, 0),
            Self::Exponential { low, span, signed } => {
                let fits = low.abs() < MOST_EXPONENT && (low + span).abs() < MOST_EXPONENT;
                if !fits {
                    return None;
                }
                (2 + i32::from(signed), 1, low, span, 0, 0)
            }
            Self::Constant(value) => (4, 1, value, 0.0, 0, 0),
            Self::Spike { probability, value } => (5, 2, probability, value, 0, 0),
            Self::Integers { low, count } => {
                // The sum must not leave 64 bits.
                low.checked_add_unsigned(count)?;
                (6, 1, 0.0, 0.0, low, count)
            }
            Self::Bernoulli(p) => (7, 1, p, 0.0, 0, 0),
        };
        let mut bytes = Vec::with_capacity(40);
        bytes.extend([a, b].iter().flat_map(|number: &f64| number.to_le_bytes()));
        bytes.extend(low.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend([kind, words].iter().flat_map(|number: &i32| number.to_le_bytes()));
        Some(bytes)
    }
}

/// An element type as a draw needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrawType {
    /// The type.
    pub dtype: DType,
    /// Largest finite value of a float.
    pub largest: f64,
    /// Range of an integer.
    pub range: (i64, i64),
    /// Values outside are counted, not kept.
    pub domain: Option<Domain>,
}

impl DrawType {
    fn bytes(self) -> Vec<u8> {
        let (mantissa_bits, exponent_bits) = match self.dtype {
            DType::F32 => (23, 8),
            DType::F16 => (10, 5),
            DType::Bf16 => (7, 8),
            DType::F8e4m3 => (3, 4),
            DType::F8e5m2 => (2, 5),
            DType::F64 | DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U8 | DType::Bool => (0, 0),
        };
        let kind = real_kind(self.dtype)
            .or_else(|| whole_kind(self.dtype).map(|kind| kind + 8))
            .unwrap_or(8);
        let domain = self.domain;
        let low = domain.and_then(|domain| domain.low).unwrap_or(f64::NEG_INFINITY);
        let high = domain.and_then(|domain| domain.high).unwrap_or(f64::INFINITY);
        let included =
            |which: fn(&Domain) -> bool| domain.as_ref().map_or(1, |domain| i32::from(which(domain)));
        let numbers = [self.largest, self.range.0 as f64, self.range.1 as f64, low, high];
        let words = [
            included(|domain| domain.low_included),
            included(|domain| domain.high_included),
            mantissa_bits,
            exponent_bits,
            kind,
            self.dtype.bytes() as i32,
        ];
        let numbers = numbers.iter().flat_map(|number: &f64| number.to_le_bytes());
        numbers
            .chain(words.iter().flat_map(|word: &i32| word.to_le_bytes()))
            .collect()
    }
}

impl Draw<'_> {
    /// Type, law and seed as the kernel `draw` takes them; `None` where a device cannot draw it.
    pub fn arguments(&self) -> Option<[Vec<u8>; 3]> {
        Some([self.target.bytes(), self.law.bytes()?, self.seed.to_vec()])
    }
}

/// The rows that a draw writes.
#[derive(Clone, Copy)]
pub struct DrawRows<'a> {
    /// A byte for each row of the tensor.
    pub choice: &'a Buffer,
    /// Elements of a row.
    pub length: usize,
    /// Rows with this byte are written.
    pub which: u8,
}

/// One draw.
#[derive(Clone, Copy)]
pub struct Draw<'a> {
    /// Type of the elements.
    pub target: DrawType,
    /// Their law.
    pub law: DrawLaw,
    /// Where the random bits come from: one key for each tensor.
    pub seed: [u8; 32],
    /// Rows that are written; `None` for all.
    pub rows: Option<DrawRows<'a>>,
}

impl Checks {
    /// Draws `count` elements of a tensor, or only those of some rows. `false` if the device
    /// does not know the law, or an element left its domain: the buffer's content means nothing then.
    ///
    /// # Errors
    /// When the device fails.
    pub fn draw(
        &self,
        owner: &Owner,
        out: &Buffer,
        count: usize,
        draw: &Draw<'_>,
    ) -> Result<bool, CudaError> {
        let Some([target, law, seed]) = draw.arguments() else {
            return Ok(false);
        };
        let rows = draw.rows;
        if out.bytes() < count * draw.target.dtype.bytes() {
            return Ok(false);
        }
        let params = vec![
            address(out),
            (count as i64).to_le_bytes().to_vec(),
            target,
            law,
            seed,
            rows.map_or_else(|| 0u64.to_le_bytes().to_vec(), |rows| address(rows.choice)),
            rows.map_or(1, |rows| rows.length as i64).to_le_bytes().to_vec(),
            rows.map_or(0, |rows| i32::from(rows.which))
                .to_le_bytes()
                .to_vec(),
        ];
        Ok(self.launch(owner, DRAW, params, count.div_ceil(8))?.values == 0)
    }

    /// Writes the elements of a tensor as float64, or as 64-bit integers where they are integers.
    ///
    /// # Errors
    /// When the device fails; `false` where a buffer is too small.
    pub fn widen(
        &self,
        owner: &Owner,
        dtype: DType,
        from: &Buffer,
        to: &Buffer,
        count: usize,
    ) -> Result<bool, CudaError> {
        if from.bytes() < count * dtype.bytes() || to.bytes() < count * 8 {
            return Ok(false);
        }
        let (kernel, kind) = match (real_kind(dtype), whole_kind(dtype)) {
            (Some(kind), _) => (WIDEN_REAL, kind),
            (None, Some(kind)) => (WIDEN_WHOLE, kind),
            (None, None) => return Ok(false),
        };
        let params = vec![
            address(from),
            (count as i64).to_le_bytes().to_vec(),
            kind.to_le_bytes().to_vec(),
            address(to),
        ];
        self.work(owner, kernel, &params, count)?;
        Ok(true)
    }

    /// Turns float64 values into their magnitudes.
    ///
    /// # Errors
    /// When the device fails.
    pub fn magnitudes(&self, owner: &Owner, values: &Buffer) -> Result<(), CudaError> {
        let count = values.bytes() / 8;
        let params = [address(values), (count as i64).to_le_bytes().to_vec()];
        self.work(owner, MAGNITUDES, &params, count)
    }
}
