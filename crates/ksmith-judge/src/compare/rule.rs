//! What one element must satisfy, and how a comparison ended.

use ksmith_task::DType;
use serde::Serialize;

use crate::number;

/// What the output holds where the expectation is beyond the dtype's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Infinity (NaN in a format without one).
    Inf,
    /// The largest finite value.
    Saturate,
    /// NaN.
    Nan,
}

/// `|out - want| <= atol + rtol * |want| + ctol * scale`, for one output tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Element type of the output.
    pub dtype: DType,
    /// Absolute part.
    pub atol: f64,
    /// Part relative to the expectation.
    pub rtol: f64,
    /// Part relative to the reference's scale output.
    pub ctol: f64,
    /// What stands where the expectation overflows.
    pub overflow: Overflow,
    /// Equality instead of a bound: the output is the expectation rounded to the dtype.
    pub exact: bool,
}

impl Rule {
    /// The bound for one expectation.
    #[inline]
    pub fn bound(&self, want: f64, scale: f64) -> f64 {
        self.atol + self.rtol * want.abs() + self.ctol * scale
    }

    /// Judges one element with every special case; the fast loop only decides the ordinary ones.
    pub(crate) fn element(&self, out: f64, want: f64, scale: f64) -> Result<(), Cause> {
        let edge = number::overflow_edge(self.dtype);
        if want.is_nan() {
            return if out.is_nan() {
                Ok(())
            } else {
                Err(Cause::NonFinite)
            };
        }
        if self.exact {
            let rounded = self
                .overflowed(want, edge)
                .unwrap_or_else(|| number::round(self.dtype, want));
            let same = rounded == out || (rounded.is_nan() && out.is_nan());
            return if same { Ok(()) } else { Err(Cause::Value) };
        }
        let bound = self.bound(want, scale);
        // Within a tolerance of the edge, both sides of it are honest.
        let may_overflow = want.abs() + bound >= edge || want.is_infinite();
        let may_stay = want.is_finite() && want.abs() - bound <= edge;
        if may_overflow {
            let limit = match self.overflow {
                Overflow::Inf if number::round(self.dtype, f64::INFINITY).is_nan() => f64::NAN,
                Overflow::Inf => f64::INFINITY.copysign(want),
                Overflow::Saturate => number::largest(self.dtype).copysign(want),
                Overflow::Nan => f64::NAN,
            };
            if out == limit || (limit.is_nan() && out.is_nan()) {
                return Ok(());
            }
        }
        if !out.is_finite() {
            return Err(Cause::NonFinite);
        }
        if !may_stay {
            return Err(Cause::NonFinite);
        }
        if (out - want).abs() <= bound {
            Ok(())
        } else {
            Err(Cause::Value)
        }
    }

    fn overflowed(&self, want: f64, edge: f64) -> Option<f64> {
        // A tie at the edge rounds to the even code, which is the overflowing one exactly where `round` says so.
        let over = want.is_infinite() || (want.abs() >= edge && !number::round(self.dtype, want).is_finite());
        over.then(|| match self.overflow {
            Overflow::Inf => number::round(self.dtype, f64::INFINITY.copysign(want)),
            Overflow::Saturate => number::largest(self.dtype).copysign(want),
            Overflow::Nan => f64::NAN,
        })
    }
}

/// The class of a failure: all that writers learn of a hidden case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A finite value outside its bound.
    Value,
    /// A non-finite value where a finite one belongs, or the other way round.
    NonFinite,
    /// An integer or bool that differs.
    Integer,
    /// An index out of range, repeated, not among the best, or out of order.
    Index,
    /// The task's own checker refused.
    Checker,
    /// An element that was never written.
    Unwritten,
}

impl Cause {
    /// The cause part of a `gate/cause` code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Value => "wrong-value",
            Self::NonFinite => "non-finite",
            Self::Integer => "wrong-integer",
            Self::Index => "wrong-index",
            Self::Checker => "checker",
            Self::Unwritten => "unwritten",
        }
    }
}

/// The worst element, shown for development cases only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Worst {
    /// Position in row-major order.
    pub index: usize,
    /// What the candidate wrote.
    pub got: f64,
    /// What the reference says.
    pub want: f64,
    /// Allowed distance.
    pub bound: f64,
}

/// How one comparison ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Elements outside their bound.
    pub failures: usize,
    /// Cause of the first failing element.
    pub cause: Option<Cause>,
    /// The first failing element, or, when all pass, the one nearest to its bound.
    pub worst: Option<Worst>,
    /// Largest error divided by its bound over finite elements with a positive bound.
    pub ratio: f64,
}

impl Outcome {
    pub(crate) const PASS: Self = Self {
        failures: 0,
        cause: None,
        worst: None,
        ratio: 0.0,
    };

    /// Whether every element passed.
    pub fn passed(&self) -> bool {
        self.failures == 0
    }

    /// Joins the outcome of a later part.
    pub(crate) fn join(self, later: Self) -> Self {
        let worst = match (self.cause, later.cause) {
            (Some(_), _) => self.worst,
            (None, Some(_)) => later.worst,
            (None, None) if later.ratio > self.ratio => later.worst,
            (None, None) => self.worst.or(later.worst),
        };
        Self {
            failures: self.failures + later.failures,
            cause: self.cause.or(later.cause),
            worst,
            ratio: self.ratio.max(later.ratio),
        }
    }
}
