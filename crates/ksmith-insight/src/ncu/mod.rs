//! Reports of NVIDIA Nsight Compute: the raw page as CSV, turned into typed metrics.
//!
//! Names vanish and change by architecture and version. Each metric that our rules use has a name of ours and a list of
//! the profiler's names for it, kept as data in `rules/metrics.toml`. A metric that is not there is listed as missing;
//! nothing is derived from a guess.

mod import;
mod metrics;
mod table;

pub use import::{Import, ImportError, KernelProfile, import, import_command, profile_command};
pub use metrics::{Metrics, names};
