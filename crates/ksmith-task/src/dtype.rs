//! Element types of tensors and scalars, with their sizes and unit roundoffs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An element type. Values cross the judge as `f64` (floats) or `i64` (integers and bools).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    F64,
    F32,
    F16,
    Bf16,
    F8e4m3,
    F8e5m2,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl DType {
    /// Every dtype, widest float first.
    pub const ALL: [Self; 12] = [
        Self::F64,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::F8e4m3,
        Self::F8e5m2,
        Self::I64,
        Self::I32,
        Self::I16,
        Self::I8,
        Self::U8,
        Self::Bool,
    ];

    /// The name used in contracts.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F8e4m3 => "f8e4m3",
            Self::F8e5m2 => "f8e5m2",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::Bool => "bool",
        }
    }

    /// Size of one element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::F8e4m3 | Self::F8e5m2 | Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether values are floating point.
    pub fn is_float(self) -> bool {
        self.unit_roundoff().is_some()
    }

    /// Unit roundoff 2^-p for p significand bits (hidden bit included); `None` for integers and bools.
    pub fn unit_roundoff(self) -> Option<f64> {
        let significand_bits = match self {
            Self::F64 => 53,
            Self::F32 => 24,
            Self::F16 => 11,
            Self::Bf16 => 8,
            Self::F8e4m3 => 4,
            Self::F8e5m2 => 3,
            Self::I64 | Self::I32 | Self::I16 | Self::I8 | Self::U8 | Self::Bool => return None,
        };
        Some((-f64::from(significand_bits)).exp2())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or(())
    }
}
