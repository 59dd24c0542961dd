//! Mechanical gates on how a candidate came to be: what a writer leaves, repeats, claims and spends.
//!
//! The judge says what a candidate is worth; these gates say whether it may be judged at all, and when a run changes
//! course. Each is a pure function from facts to a [`Refusal`] with a stable code (`docs/verdicts.md`). No model has a
//! part in them, and none of them reads a shell command: what counts is the files that are left. What an agent may touch
//! is not decided here: its [`Desk`](crate::writers::Desk) compares the files that it was given.

mod claims;
mod codes;
mod human;
mod hypothesis;
mod ladder;
mod secrets;
mod similar;
mod size;
mod tokens;

pub use claims::{Claim, Claimed, Evidence, Statement, check_claims, unproved};
pub use codes::{Cause, Refusal, document};
pub use human::{Question, Standing};
pub use hypothesis::check_hypothesis;
pub use ladder::{LADDER, Ladder, Rung};
pub use secrets::check_secrets;
pub use similar::{Fingerprint, NEAR, Past, check_repeat};
pub use size::{SizeLimits, check_bytes, check_size};
pub use tokens::{normalised, without_comments};
