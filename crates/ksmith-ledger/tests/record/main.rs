//! A run's record as its users meet it: format, endings, look-ups, and every way to damage or forge it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod endings;
mod export;
mod format;
mod lookup;
#[path = "../support/mod.rs"]
mod support;
mod verify;
