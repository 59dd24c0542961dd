//! Repository chores that are not part of the product: figures and generated docs.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "chores talk to whoever runs them"
)]

mod aa;
mod bundle;
mod delay;
mod record;
mod redteam;
mod spaces;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Repository chores: figures and generated docs.
#[derive(Parser)]
#[command(name = "xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Judge a byte-identical copy of a baseline many times; none may be accepted
    Aa(aa::AaArgs),
    /// Judge delay kernels that truly do less work, and equal ones, many times
    Power(aa::PowerArgs),
    /// Record A/A timings of delay kernels for the simulations
    RecordAa(record::RecordArgs),
    /// Run every cheat and every honest candidate through the judge
    Redteam(redteam::RedteamArgs),
    /// Compile CUDA candidates and resolve their launch plans for a machine without compilers
    Bundle(bundle::BundleArgs),
    /// Remove each gate of the judge in turn and see what gets through
    Mutation(redteam::MutationArgs),
    /// Score the offline agent's strategy on recorded spaces, out of sample
    Spaces(spaces::SpacesArgs),
}

/// What a chore may fail with; shown and done.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    ksmith_box::intercept_with(&[ksmith_worker::cpu::ROLE, ksmith_worker::cuda::COMPILE_ROLE]);
    let done = match Args::parse().chore {
        Chore::Aa(args) => aa::aa(&args),
        Chore::Power(args) => aa::power(&args),
        Chore::RecordAa(args) => record::run(&args),
        Chore::Redteam(args) => redteam::redteam(&args),
        Chore::Bundle(args) => bundle::bundle(&args),
        Chore::Mutation(args) => redteam::mutation(&args),
        Chore::Spaces(args) => spaces::spaces(&args),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            let mut cause = failure.source();
            while let Some(inner) = cause {
                eprintln!("  because: {inner}");
                cause = inner.source();
            }
            ExitCode::FAILURE
        }
    }
}
