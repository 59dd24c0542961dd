//! Keeping drawn values inside an input's domain and inside its dtype.

use ksmith_task::contract::Domain;

use super::draw::Target;
use crate::number;

/// Rounds to the dtype, after folding into the domain. A draw is never non-finite unless its fill says so.
pub(crate) fn settle(value: f64, target: &Target<'_>) -> f64 {
    let rounded = to_dtype(value, target);
    let Some(domain) = &target.domain else {
        return rounded;
    };
    if domain.contains(rounded) || value.is_nan() {
        return rounded;
    }
    let folded = to_dtype(fold(value, domain), target);
    if domain.contains(folded) {
        folded
    } else {
        to_dtype(inside(domain, target), target)
    }
}

fn to_dtype(value: f64, target: &Target<'_>) -> f64 {
    if value.is_finite() && target.dtype.is_float() {
        let largest = number::largest(target.dtype);
        number::round(target.dtype, value.clamp(-largest, largest))
    } else {
        number::round(target.dtype, value)
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
fn inside(domain: &Domain, target: &Target<'_>) -> f64 {
    match (domain.low, domain.high) {
        (Some(low), Some(high)) => low + (high - low) / 2.0,
        (Some(low), None) if low == 0.0 && target.dtype.is_float() => number::smallest_normal(target.dtype),
        (Some(low), None) => low + low.abs().max(1.0),
        (None, Some(high)) if high == 0.0 && target.dtype.is_float() => {
            -number::smallest_normal(target.dtype)
        }
        (None, Some(high)) => high - high.abs().max(1.0),
        (None, None) => 0.0,
    }
}
