//! The physical floor of a contract's time, from bytes and operations it cannot avoid and rates that were measured.
//!
//! Rates come from our own probes on the same device in the same run; a data sheet is never used. A candidate faster
//! than the floor is a mistake or a cheat.

use serde::{Deserialize, Serialize};

/// Measured rates of a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Bytes a second of a plain copy (read and written bytes counted), measured.
    pub bytes_per_second: f64,
    /// Operations a second of the unit that this work uses, measured; `None` if not measured.
    pub flops_per_second: Option<f64>,
    /// Time of an empty launch or call in seconds, measured.
    pub launch_seconds: f64,
}

/// What bounds the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Bound {
    Memory,
    Compute,
    Launch,
}

/// The floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Least time in seconds.
    pub seconds: f64,
    /// The largest term.
    pub bound: Bound,
    /// Operations per byte of the contract.
    pub intensity: Option<f64>,
    /// What was not known and is therefore not part of the floor.
    pub incomplete: Vec<String>,
}

impl Floor {
    /// The floor as a share of a measured time: 1 is reached, above 1 is impossible. `None` for times that are none.
    pub fn share_of(&self, measured_seconds: f64) -> Option<f64> {
        (measured_seconds.is_finite() && measured_seconds > 0.0).then(|| self.seconds / measured_seconds)
    }
}

/// Numbers that no rate has.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{name}` is {value}: a positive, finite number was expected")]
pub struct RateError {
    /// Which number.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// Computes `max(bytes / copy rate, operations / matrix rate) + launch`.
///
/// # Errors
/// If a rate or a count is negative, zero where it divides, or not finite.
pub fn floor(bytes: f64, flops: f64, rates: Rates) -> Result<Floor, RateError> {
    let positive = |name, value: f64| {
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(RateError { name, value })
        }
    };
    let count = |name, value: f64| {
        if value.is_finite() && value >= 0.0 {
            Ok(value)
        } else {
            Err(RateError { name, value })
        }
    };
    let memory = count("bytes", bytes)? / positive("bytes_per_second", rates.bytes_per_second)?;
    let flops = count("flops", flops)?;
    let launch = count("launch_seconds", rates.launch_seconds)?;
    let mut incomplete = Vec::new();
    let compute = match rates.flops_per_second {
        Some(rate) => flops / positive("flops_per_second", rate)?,
        None => {
            if flops > 0.0 {
                incomplete.push("no measured arithmetic rate: the floor is that of memory alone".to_owned());
            }
            0.0
        }
    };
    let bound = if launch >= memory.max(compute) {
        Bound::Launch
    } else if memory >= compute {
        Bound::Memory
    } else {
        Bound::Compute
    };
    Ok(Floor {
        seconds: memory.max(compute) + launch,
        bound,
        intensity: (bytes > 0.0).then(|| flops / bytes),
        incomplete,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        bytes_per_second: 4.0e12,
        flops_per_second: Some(6.0e14),
        launch_seconds: 2.0e-6,
    };

    #[test]
    fn a_row_reduction_is_bound_by_memory_and_a_large_product_by_arithmetic() {
        let cells = 16_384.0 * 4096.0;
        let softmax = floor(8.0 * cells, 5.0 * cells, RATES).unwrap();
        assert_eq!(softmax.bound, Bound::Memory);
        assert!((softmax.seconds - 136.2e-6).abs() < 0.1e-6, "{softmax:?}");
        let n = 8192f64;
        assert_eq!(
            floor(6.0 * n * n, 2.0 * n * n * n, RATES).unwrap().bound,
            Bound::Compute
        );
        assert_eq!(floor(4096.0, 1024.0, RATES).unwrap().bound, Bound::Launch);
    }

    #[test]
    fn faster_than_the_floor_shows_as_a_share_above_one() {
        let least = floor(4.0e8, 0.0, RATES).unwrap();
        assert!(least.share_of(50e-6).unwrap() > 1.0);
        assert!(least.share_of(200e-6).unwrap() < 1.0);
        assert_eq!(least.share_of(0.0), None);
    }

    #[test]
    fn a_rate_that_was_not_measured_is_said_and_nonsense_is_refused() {
        let rates = Rates {
            flops_per_second: None,
            ..RATES
        };
        assert_eq!(floor(1.0, 1.0, rates).unwrap().incomplete.len(), 1);
        assert!(floor(1.0, 0.0, rates).unwrap().incomplete.is_empty());
        assert!(floor(f64::NAN, 0.0, RATES).is_err());
        assert!(
            floor(
                1.0,
                0.0,
                Rates {
                    bytes_per_second: 0.0,
                    ..RATES
                }
            )
            .is_err()
        );
    }
}
