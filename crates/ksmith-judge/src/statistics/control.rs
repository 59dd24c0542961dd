//! The A/A control: the champion against a second worker with the same bytes.

use serde::{Deserialize, Serialize};

use super::{Interval, median_bounds};

/// Error of each end of the A/A interval: together 1 %.
pub(crate) const ALPHA: f64 = 0.005;

/// What the A/A control says of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Equal bytes read as equal, within limits.
    Sound(Interval),
    /// The interval does not contain zero: something favours one of two equal arms.
    OffZero(Interval),
    /// The interval is wider than the limit: nothing can be told apart.
    TooWide(Interval),
    /// No pair was left.
    Empty,
}

/// Judges the A/A pairs (log-ratios by process set); `limit` is the widest half-width, for example 0.015.
pub fn control(sets: &[Vec<f64>], limit: f64) -> Control {
    match median_bounds(sets, ALPHA) {
        None => Control::Empty,
        Some(interval) if !interval.contains(0.0) => Control::OffZero(interval),
        Some(interval) if interval.half_width() > limit => Control::TooWide(interval),
        Some(interval) => Control::Sound(interval),
    }
}

/// A gain this many times beyond the reach of an unsound control does not hang on it.
const DWARFS: f64 = 10.0;

/// Where equal kernels may differ by more than this (log-ratio), nothing is said of any gain.
const WORST_REACH: f64 = 0.1;

impl Control {
    /// How far from zero equal kernels may lie (log-ratio) where the control is unsound: by so much every interval of the
    /// same stage is widened.
    pub fn reach(&self) -> Option<f64> {
        match self {
            Self::OffZero(interval) | Self::TooWide(interval) => {
                Some(interval.lower.abs().max(interval.upper.abs()))
            }
            Self::Sound(_) | Self::Empty => None,
        }
    }

    /// Reports whether a gain bounded below by `lower` (log-ratio) stands whatever made equal kernels differ.
    pub fn dwarfed_by(&self, lower: f64) -> bool {
        self.reach()
            .is_some_and(|reach| reach <= WORST_REACH && lower >= DWARFS * reach)
    }

    /// The interval, if there was one.
    pub fn interval(&self) -> Option<Interval> {
        match *self {
            Self::Sound(interval) | Self::OffZero(interval) | Self::TooWide(interval) => Some(interval),
            Self::Empty => None,
        }
    }
}

/// The floor that a claim must clear (log-ratio): the task's, or the A/A half-width where that is larger.
pub fn claim_floor(task_floor: f64, control: Option<Interval>) -> f64 {
    control
        .map_or(f64::INFINITY, |interval| interval.half_width())
        .max(task_floor.ln_1p())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(center: f64, spread: f64) -> Vec<Vec<f64>> {
        (0..10)
            .map(|set| {
                (0..6)
                    .map(|pair| center + spread * f64::from((set * 7 + pair * 11) % 13 - 6) / 6.0)
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_quiet_control_is_sound_and_sets_no_higher_floor() {
        let found = control(&sets(0.0, 0.005), 0.015);
        assert!(matches!(found, Control::Sound(_)), "{found:?}");
        assert!((claim_floor(0.01, found.interval()) - 0.01_f64.ln_1p()).abs() < 1e-12);
    }

    #[test]
    fn a_wide_control_is_noise_and_a_moderate_one_raises_the_floor() {
        assert!(matches!(control(&sets(0.0, 0.2), 0.015), Control::TooWide(_)));
        let found = control(&sets(0.0, 0.035), 0.015);
        assert!(matches!(found, Control::Sound(_)), "{found:?}");
        assert!(claim_floor(0.005, found.interval()) > 0.005_f64.ln_1p());
    }

    #[test]
    fn equal_bytes_that_read_as_unequal_are_no_control() {
        assert!(matches!(control(&sets(0.02, 0.005), 0.015), Control::OffZero(_)));
        assert_eq!(control(&[], 0.015), Control::Empty);
        assert_eq!(claim_floor(0.01, None), f64::INFINITY);
    }
}
