//! Values of expressions.

use std::fmt;

use crate::DType;

/// What an expression evaluates to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A float; never the result of an overflow.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A dtype, the argument of `u(..)` and the value of a dtype variable.
    DType(DType),
}

impl Value {
    /// The number as a float; `None` for truth values and dtypes.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Bool(_) | Self::DType(_) => None,
        }
    }

    /// The type with its article, for messages.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a truth value",
            Self::DType(_) => "a dtype",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::DType(value) => write!(f, "{value}"),
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<DType> for Value {
    fn from(value: DType) -> Self {
        Self::DType(value)
    }
}
