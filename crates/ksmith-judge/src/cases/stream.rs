//! Counter-based random streams: one key per (secret, workload, case, tensor), one stream per block of elements.
//!
//! Any block can be generated alone, in any order, by any number of threads, with the same result. The candidate sees
//! all values made from a key, so the generator must not be invertible: ChaCha with 12 rounds.

use ksmith_task::Digest;
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng as _};

use super::secret::Secret;

/// Elements generated from one stream.
pub const BLOCK: usize = 4096;

/// The key of one tensor (or one decision) of one case.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// Derives the key; each name is hashed with its length, so keys of different places never coincide.
    pub fn new(secret: &Secret, workload: &str, case: u64, what: &str) -> Self {
        let case = case.to_le_bytes();
        let digest = Digest::of_parts([
            ("secret", &secret.bytes()[..]),
            ("workload", workload.as_bytes()),
            ("case", &case[..]),
            ("what", what.as_bytes()),
        ]);
        Self(*digest.as_bytes())
    }

    /// The key's own bits.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The stream of one block.
    pub fn block(&self, index: u64) -> Stream {
        let mut generator = ChaCha12Rng::from_seed(self.0);
        generator.set_stream(index);
        Stream(generator)
    }
}

/// A stream of random numbers.
#[derive(Debug)]
pub struct Stream(ChaCha12Rng);

impl Stream {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills a slice with random bits.
    pub fn fill(&mut self, words: &mut [u64]) {
        let mut bytes = [0u8; 1024];
        for part in words.chunks_mut(128) {
            let bytes = &mut bytes[..8 * part.len()];
            self.0.fill_bytes(bytes);
            for (word, raw) in part.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*raw);
            }
        }
    }

    /// Uniform in the open interval (0, 1): never an end point.
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// Uniform in `0..n` without bias worth naming (64 bits are multiplied, not reduced modulo `n`).
    pub fn below(&mut self, n: u64) -> u64 {
        below(self.bits(), n)
    }
}

/// Maps 64 random bits to the open interval (0, 1).
pub(crate) fn unit(bits: u64) -> f64 {
    const STEP: f64 = 1.0 / (1u64 << 52) as f64;
    ((bits >> 12) as f64 + 0.5) * STEP
}

/// Maps 64 random bits to `0..n`; 0 for `n` = 0.
pub(crate) fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_differ_by_every_part_of_their_key() {
        let secret = Secret::from_bytes([1; 32]);
        let first = |key: Key, block| key.block(block).bits();
        let base = first(Key::new(&secret, "w", 0, "x"), 0);
        assert_eq!(base, first(Key::new(&secret, "w", 0, "x"), 0));
        for other in [
            first(Key::new(&secret, "w", 0, "x"), 1),
            first(Key::new(&secret, "w", 1, "x"), 0),
            first(Key::new(&secret, "w", 0, "y"), 0),
            first(Key::new(&secret, "v", 0, "x"), 0),
            first(Key::new(&Secret::from_bytes([2; 32]), "w", 0, "x"), 0),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn bulk_filling_gives_the_same_numbers_as_single_draws() {
        let key = Key::new(&Secret::dev(), "w", 3, "x");
        let mut words = [0; 300];
        key.block(5).fill(&mut words);
        let mut stream = key.block(5);
        assert!(words.iter().all(|word| *word == stream.bits()));
    }
}
