//! A run's record as its users meet it: format, endings, look-ups, and every way to damage or forge it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod endings;
mod format;
mod lookup;
#[path = "../support/mod.rs"]
mod support;
mod verify;
