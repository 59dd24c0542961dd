//! The protocol between judge and candidate, and its CPU runner.
//!
//! [`build`] turns a candidate's sources into a library inside a compiler's box. [`cpu::Worker`] runs that library in a
//! box of its own: the judge holds the clock, the expected values and the writable maps of the inputs; the worker holds
//! the candidate and nothing else. See `docs/worker.md`.

pub mod build;
pub mod cpu;
pub mod cuda;
mod exports;

/// First line of every `main` that starts workers; test binaries say
/// `ksmith_box::intercept_tests!(ksmith_worker::intercept);`.
pub fn intercept() {
    ksmith_box::intercept_with(&[cpu::ROLE, cuda::ROLE, cuda::COMPILE_ROLE]);
}

#[cfg(test)]
ksmith_box::intercept_tests!(crate::intercept);
