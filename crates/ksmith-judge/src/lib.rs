//! Cases, reference, gates, statistics, verdict.

pub mod bench;
pub mod statistics;
