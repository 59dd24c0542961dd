//! Keeping drawn values inside an input's domain and inside its dtype.

use ksmith_task::DType;
use ksmith_task::contract::Domain;

use crate::number;

/// Rounds to the dtype, after folding into the domain. A draw is never non-finite unless its fill says so.
pub(crate) fn settle(value: f64, dtype: DType, domain: Option<&Domain>) -> f64 {
    let rounded = to_dtype(value, dtype);
    let Some(domain) = domain else {
        return rounded;
    };
    if domain.contains(rounded) || value.is_nan() {
        return rounded;
    }
    let folded = to_dtype(fold(value, domain), dtype);
    if domain.contains(folded) {
        folded
    } else {
        to_dtype(inside(domain, dtype), dtype)
    }
}

fn to_dtype(value: f64, dtype: DType) -> f64 {
    if value.is_finite() && dtype.is_float() {
        let largest = number::largest(dtype);
        number::round(dtype, value.clamp(-largest, largest))
    } else {
        number::round(dtype, value)
    }
}

/// Reflects at the ends, so that a law's mass does not pile up on them.
fn fold(value: f64, domain: &Domain) -> f64 {
    match (domain.low, domain.high) {
        (Some(low), Some(high)) if high > low => {
            let span = high - low;
            let phase = libm::fmod(value - low, 2.0 * span).abs();
            low + if phase <= span { phase } else { 2.0 * span - phase }
        }
        (Some(low), None) => low + (low - value).abs(),
        (None, Some(high)) => high - (value - high).abs(),
        (Some(low), Some(_)) => low,
        (None, None) => value,
    }
}

/// A point well inside, for values that rounding keeps on an end that does not belong to the domain.
fn inside(domain: &Domain, dtype: DType) -> f64 {
    match (domain.low, domain.high) {
        (Some(low), Some(high)) => low + (high - low) / 2.0,
        (Some(low), None) if low == 0.0 && dtype.is_float() => number::smallest_normal(dtype),
        (Some(low), None) => low + low.abs().max(1.0),
        (None, Some(high)) if high == 0.0 && dtype.is_float() => -number::smallest_normal(dtype),
        (None, Some(high)) => high - high.abs().max(1.0),
        (None, None) => 0.0,
    }
}
