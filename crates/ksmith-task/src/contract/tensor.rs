//! Tensors and scalars of a contract, with the rules by which outputs are compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::expr::Expr;
use crate::{DType, Fill};

/// A dtype or a dtype variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TypeName {
    /// A fixed dtype.
    Fixed(DType),
    /// A variable of `types`.
    Variable(String),
}

/// The values an input may take: a closed or open interval, or whole numbers only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Domain {
    /// Lower end, `None` for unbounded.
    pub low: Option<f64>,
    /// Whether the lower end belongs to the domain.
    pub low_included: bool,
    /// Upper end, `None` for unbounded.
    pub high: Option<f64>,
    /// Whether the upper end belongs to the domain.
    pub high_included: bool,
}

impl Domain {
    /// Whether `value` lies in the domain; NaN never does.
    pub fn contains(&self, value: f64) -> bool {
        let above = self
            .low
            .is_none_or(|low| value > low || (self.low_included && value >= low));
        let below = self
            .high
            .is_none_or(|high| value < high || (self.high_included && value <= high));
        above && below && !value.is_nan()
    }
}

/// An input tensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Input {
    /// Name, also the C parameter.
    pub name: String,
    /// Element type.
    pub dtype: TypeName,
    /// Sizes, row-major.
    pub shape: Vec<Expr>,
    /// How dev cases are filled.
    pub fill: Fill<Expr>,
    /// How hidden cases are filled, beside `fill`.
    pub hidden: Vec<Fill<Expr>>,
    /// Values outside are never drawn.
    pub domain: Option<Domain>,
    /// Strides in elements; `None` means row-major contiguous.
    pub strides: Option<Vec<Expr>>,
    /// Alignment of the base pointer in bytes; `None` means 64 on CPU, 256 on CUDA.
    pub align: Option<u32>,
    /// Unchanged between calls.
    pub is_static: bool,
}

/// Where a scalar's value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalarSource {
    /// A fixed value or an expression over axes.
    Value(Expr),
    /// Drawn per case.
    Fill(Fill<Expr>),
}

/// A scalar argument.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Scalar {
    /// Name, also the C parameter.
    pub name: String,
    /// Type of the argument.
    pub dtype: TypeName,
    /// Where its value comes from.
    pub source: ScalarSource,
}

/// What a float result beyond the output's range becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overflow {
    /// Infinity (NaN in a dtype without infinities).
    Inf,
    /// The largest finite value.
    Saturate,
    /// NaN.
    Nan,
}

/// How an output is compared, with parameters still as expressions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "mode")]
#[non_exhaustive]
pub enum Compare<N = f64> {
    /// Each element within the tolerance.
    Elementwise,
    /// Each element bit-equal to the reference rounded to the dtype (NaN equals NaN).
    Exact,
    /// Integer output against a real reference: off by at most `0.5 + tie`.
    Rounded {
        /// Slack around one half.
        tie: N,
    },
    /// Chosen indices: in range, distinct, each chosen score >= the k-th best − `tie`, order up to `tie`.
    Index {
        /// The input or output that holds the scores.
        of: String,
        /// Dimension of `of` that is searched.
        axis: usize,
        /// How many are chosen.
        k: N,
        /// Scores so close count as equal.
        tie: N,
    },
    /// A trusted program gives one error ratio per element; at most 1 passes.
    Checker {
        /// `.c` or `.py` file.
        source: PathBuf,
    },
}

/// An output tensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Output {
    /// Name, also the C parameter.
    pub name: String,
    /// Element type.
    pub dtype: TypeName,
    /// Sizes, row-major.
    pub shape: Vec<Expr>,
    /// Strides in elements; `None` means row-major contiguous. Gaps are poisoned and checked.
    pub strides: Option<Vec<Expr>>,
    /// Alignment of the base pointer in bytes; `None` means 64 on CPU, 256 on CUDA.
    pub align: Option<u32>,
    /// Absolute tolerance per dtype.
    pub atol: BTreeMap<DType, Expr>,
    /// Relative tolerance per dtype.
    pub rtol: BTreeMap<DType, Expr>,
    /// Tolerance per unit of `scale`, per dtype.
    pub ctol: BTreeMap<DType, Expr>,
    /// Whether the reference has an extra float64 output with the sum of absolute terms.
    pub scale: bool,
    /// How it is compared.
    pub compare: Compare<Expr>,
    /// The input whose memory it shares.
    pub inplace: Option<String>,
    /// The input of which it is the final state.
    pub state_of: Option<String>,
    /// The axis at which a sequence may be cut; set where `state_of` is.
    pub cut: Option<String>,
    /// The index output at whose own indices this output is compared.
    pub along: Option<String>,
    /// What values beyond the range become.
    pub overflow: Overflow,
}
