//! The gateway against the scripted model server: everything that a run relies on, over real sockets.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod budget;
mod client;
mod doors;
mod faults;
mod formats;
mod replay;
#[path = "../reviewed/mod.rs"]
mod reviewed;
mod reviewer;
mod support;
