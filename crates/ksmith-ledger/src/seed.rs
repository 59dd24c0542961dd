//! Commitments to secret seeds: hashed before use, revealed in the closing record.

use ksmith_task::Digest;
use serde::{Deserialize, Serialize};

/// A promise about a secret seed, written before the seed is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SeedCommitment {
    /// What the seed is for (`screen`, `confirm-1`, …); unique within a run.
    pub purpose: String,
    /// [`commit_seed`] of purpose and seed.
    pub commitment: Digest,
}

impl SeedCommitment {
    /// Commits to `seed` for `purpose`.
    pub fn new(purpose: &str, seed: &[u8]) -> Self {
        Self {
            purpose: purpose.to_owned(),
            commitment: commit_seed(purpose, seed),
        }
    }
}

/// A seed that is no longer secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RevealedSeed {
    /// The purpose that was committed to.
    pub purpose: String,
    /// The seed's bytes in lower-case hex.
    pub seed: String,
}

impl RevealedSeed {
    /// Reveals `seed`.
    pub fn new(purpose: &str, seed: &[u8]) -> Self {
        Self {
            purpose: purpose.to_owned(),
            seed: seed.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Hash that binds a seed to its purpose. Seeds hold 16 random bytes or more, else the hash could be searched.
pub fn commit_seed(purpose: &str, seed: &[u8]) -> Digest {
    Digest::of_parts([("purpose", purpose.as_bytes()), ("seed", seed)])
}
