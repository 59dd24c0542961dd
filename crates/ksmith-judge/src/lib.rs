//! Cases, reference, gates, statistics, verdict.
