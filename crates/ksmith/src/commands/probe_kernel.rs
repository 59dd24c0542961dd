//! `ksmith probe-kernel`: what `ksmith doctor` lets the profiler look at.

use ksmith_task::ExitCode;

use super::Outcome;
use crate::failure::Failure;

/// Launch one small kernel of our own on the first device
///
/// `ksmith doctor` runs it under the profiler to learn whether counters can be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Outcome {
    match ksmith_machine::launch_probe_kernel() {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) => Err(Failure::of(ExitCode::Environment, &error)
            .hint("`ksmith doctor` says what this machine lacks for device work.")),
    }
}
