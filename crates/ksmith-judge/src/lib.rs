//! Cases, reference, gates, statistics, verdict.

pub mod bench;
pub mod cases;
pub mod compare;
pub mod number;
pub mod statistics;
