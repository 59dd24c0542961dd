//! The allow-list of compiler flags.

/// A flag that is not on the allow-list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the flag `{flag}` is not allowed: {reason}")]
pub struct FlagError {
    /// The flag.
    pub flag: String,
    /// Why not.
    pub reason: String,
}

/// Checks one flag of a CPU candidate.
pub fn check_cpu_flag(_flag: &str) -> Result<(), FlagError> {
    Ok(())
}

/// Checks one flag of a CUDA candidate.
pub fn check_cuda_flag(_flag: &str) -> Result<(), FlagError> {
    Ok(())
}
