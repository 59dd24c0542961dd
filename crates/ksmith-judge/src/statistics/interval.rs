//! An estimate with its bounds.

use serde::{Deserialize, Deserializer, Serialize};

/// A point estimate between two one-sided bounds.
///
/// An open end is an infinity in memory and null in JSON, which has no infinities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower bound; minus infinity where the samples are too few.
    #[serde(deserialize_with = "open_below")]
    pub lower: f64,
    /// Point estimate.
    pub point: f64,
    /// Upper bound; plus infinity where the samples are too few.
    #[serde(deserialize_with = "open_above")]
    pub upper: f64,
}

impl Interval {
    /// Half of the distance between the bounds.
    pub fn half_width(&self) -> f64 {
        (self.upper - self.lower) / 2.0
    }

    /// Reports whether `value` lies between the bounds, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }

    /// Both bounds moved outwards by `reach`; the point stays.
    pub fn widened(self, reach: f64) -> Self {
        Self {
            lower: self.lower - reach,
            point: self.point,
            upper: self.upper + reach,
        }
    }

    /// Takes the wider end on each side; the point stays.
    pub fn weaker(self, other: Self) -> Self {
        Self {
            lower: self.lower.min(other.lower),
            point: self.point,
            upper: self.upper.max(other.upper),
        }
    }
}

fn open_below<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NEG_INFINITY))
}

fn open_above<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}
