//! Tensors and scalars as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{At, Formula, PerType, TextOr};
use crate::contract::Overflow;

/// An input tensor.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Input")]
pub(crate) struct InputDocument {
    /// Name, also the C parameter.
    pub(crate) name: At<String>,
    /// A dtype or a variable of `types`.
    pub(crate) dtype: At<String>,
    /// Sizes, row-major.
    pub(crate) shape: At<Vec<Formula>>,
    /// How dev cases are filled; default that of the family.
    pub(crate) fill: Option<At<String>>,
    /// How hidden cases are filled, beside `fill`; default that of the family.
    pub(crate) hidden: Option<Vec<At<String>>>,
    /// Values outside are never drawn: `<= 0`, `> 0`, `0..1`, `finite`.
    pub(crate) domain: Option<At<String>>,
    /// Strides in elements; default row-major without gaps.
    pub(crate) strides: Option<At<Vec<Formula>>>,
    /// Alignment of the base pointer in bytes; default 64 on CPU, 256 on CUDA.
    pub(crate) align: Option<At<u32>>,
    /// Unchanged between calls; default false.
    #[serde(rename = "static")]
    pub(crate) is_static: Option<bool>,
}

/// A scalar argument.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scalar")]
pub(crate) struct ScalarDocument {
    /// Name, also the C parameter.
    pub(crate) name: At<String>,
    /// A dtype or a variable of `types`.
    pub(crate) dtype: At<String>,
    /// A number or an expression.
    pub(crate) value: Option<Formula>,
    /// Drawn per case.
    pub(crate) fill: Option<At<String>>,
}

/// An output tensor.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Output")]
pub(crate) struct OutputDocument {
    /// Name, also the C parameter.
    pub(crate) name: At<String>,
    /// A dtype or a variable of `types`.
    pub(crate) dtype: At<String>,
    /// Sizes, row-major; default that of the input it shares memory with.
    pub(crate) shape: Option<At<Vec<Formula>>>,
    /// Strides in elements; default row-major without gaps.
    pub(crate) strides: Option<At<Vec<Formula>>>,
    /// Alignment of the base pointer in bytes; default 64 on CPU, 256 on CUDA.
    pub(crate) align: Option<At<u32>>,
    /// Absolute tolerance.
    pub(crate) atol: Option<At<PerType>>,
    /// Relative tolerance.
    pub(crate) rtol: Option<At<PerType>>,
    /// Tolerance per unit of the reference's scale output, such as `8 * u(f32)`.
    pub(crate) ctol: Option<At<PerType>>,
    /// Whether the reference has a scale output; default whether `ctol` is given.
    pub(crate) scale: Option<At<bool>>,
    /// `elementwise` (default), `exact`, or a table with `mode` or `checker`.
    pub(crate) compare: Option<At<TextOr<CompareDocument>>>,
    /// The input whose memory it shares.
    pub(crate) inplace: Option<At<String>>,
    /// The input of which it is the final state.
    pub(crate) state_of: Option<At<String>>,
    /// The axis at which a sequence may be cut; needed where it does not follow from the shapes.
    pub(crate) cut: Option<At<String>>,
    /// The index output at whose own indices this output is compared.
    pub(crate) along: Option<At<String>>,
    /// What values beyond the range become; default `inf`.
    pub(crate) overflow: Option<Overflow>,
}

/// How an output is compared, with details.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Compare")]
pub(crate) struct CompareDocument {
    /// `elementwise`, `exact`, `rounded` or `index`.
    pub(crate) mode: Option<At<String>>,
    /// Of `index`: the tensor with the scores.
    pub(crate) of: Option<At<String>>,
    /// Of `index`: the dimension of `of` that is searched, counted from 0, negative from the end; default -1.
    pub(crate) axis: Option<At<i64>>,
    /// Of `index`: how many are chosen; default 1.
    pub(crate) k: Option<Formula>,
    /// Of `index` and `rounded`: slack; default 0.
    pub(crate) tie: Option<Formula>,
    /// A trusted `.c` or `.py` file that gives one error ratio per element.
    pub(crate) checker: Option<At<String>>,
}
