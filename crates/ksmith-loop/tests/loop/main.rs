//! The loop with a judge and writers that follow a script: every decision, ending and interruption, without compilers
//! and clocks.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod agents;
mod endings;
mod judgement;
mod kill;
mod lore;
mod models;
mod paid;
mod process;
mod replayed;
mod rounds;
mod scripted;

ksmith_box::intercept_tests!(ksmith_loop::intercept);
