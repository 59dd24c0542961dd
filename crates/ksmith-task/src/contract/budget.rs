//! Hard stops of a run.

use std::time::Duration;

use serde::Serialize;

/// Hard stops of a run; `None` is no limit, zero allows nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Budget {
    /// Wall-clock time; default 20 minutes.
    pub wall: Duration,
    /// Full scorings; default 60.
    pub candidates: u32,
    /// Money for models and devices; default 5.
    pub cost_usd: f64,
    /// Model tokens.
    pub tokens: Option<u64>,
    /// GPU time.
    pub device: Option<Duration>,
    /// Price of an hour of GPU time.
    pub device_usd_per_hour: Option<f64>,
}
